"""``meta_static`` in front of a schedule: the instances that it asks for, beside what the options say."""

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from metafork.comprehensive.cli import cli
from metafork.comprehensive.emit import write_outputs
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.options import StaticValueError
from metafork.comprehensive.verification import Options, verify
from metafork.ir.invariants import InvariantError, check_program
from metafork.ir.static_values import with_static_values
from metafork.printing.metafork_text import metafork_text
from tests.metafork.programs import program
from tests.runtime.compiling import succeed

QUICK = {"counters": ("threads_per_block",), "strategies": ("granularity", "caching")}
LOOPS = """
    meta_for (int i = 0; i < n / (s * B); i++)
      meta_for (int j = 0; j < B; j++)
        for (int k = 0; k < s; k++) {
          int p = (i * s + k) * B + j;
          b[p] = b[p] * 2 + a[p];
        }
"""
TWICE = f"""#define WARP 8
#define TUNED(x) meta_static(x: 1, 3)
enum {{ OTHER = 4 }};
void twice(int n, int s, int B, const int a[n], int b[n])
{{
  const int half = WARP / 2;
  if (n < 0)
    return;
  else TUNED(s) /* and */ meta_static(B: half, WARP) meta_schedule cache() {{ {LOOPS} }}
  for (int t = 0; t < 2; t++) meta_schedule cache() {{ {LOOPS} }}
  {{ meta_static(s: 5 - 4;
                 B: OTHER)
  meta_schedule cache() {{ {LOOPS} }} }}
}}
"""
ONE = f"""void one(int n, int s, int B, const int a[n], int b[n])
{{ meta_static(s: 2, B: 4, 8) meta_schedule {{ {LOOPS} }} }}
"""


def invoke(*arguments):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def values(result):
    """The values of all instances, by schedule; each leaf has the same."""
    return [[dict(one.values) for one in tree.leaves[0].instances] for tree in result.schedules]


@pytest.mark.parametrize(
    ("static", "first", "third"),
    [
        (None, [(1, 4), (1, 8), (3, 4), (3, 8)], [(1, 4)]),
        ({}, [(1, 4), (1, 8), (3, 4), (3, 8)], [(1, 4)]),
        ({"s": (2,)}, [(2, 4), (2, 8)], [(2, 4)]),
        ({"B": (16,), "s": (2, 1)}, [(2, 16), (1, 16)], [(2, 16), (1, 16)]),
        ("none", [], []),
    ],
)
def test_values_of_the_text_and_of_the_options(static, first, third):
    found = values(optimize(TWICE, static=static, **QUICK))
    assert found[0] == [{"s": s, "B": B} for s, B in first]
    assert found[2] == [{"s": s, "B": B} for s, B in third]
    assert bool(found[1]) == isinstance(static, dict) & bool(static)


def test_schedules_of_which_nobody_says_anything_get_typical_values():
    first, second, third = values(optimize(TWICE, static="auto", **QUICK))
    assert [one["s"] for one in first] == [1, 1, 3, 3]
    assert {"B": 256, "s": 4} in second
    assert third == [{"s": 1, "B": 4}]


@pytest.mark.slow
def test_instances_of_the_text_run_and_the_host_file_is_c(tmp_path):
    options = Options(points=3, optimization="-O0", dataflow_seconds=0)
    found = verify(
        ONE.replace("4, 8", "4"), options=options, counters=("threads_per_block",), strategies=(), machine="all"
    )
    assert found.passed, found.table()
    assert [(row.leaf, row.for_values) for row in found.rows] == [(1, True), (1, False)]
    write_outputs(optimize(TWICE, **QUICK), tmp_path)
    host = next(tmp_path.glob("*_host.c"))
    assert "meta_static" not in host.read_text().replace("meta_static(x: 1, 3)", "")
    flags = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused")
    succeed(["gcc", *flags, f"-I{tmp_path}/include", "-fsyntax-only", host])


def test_the_clause_is_printed_and_read_back():
    before = program(ONE)
    assert before.static == (("s", (2,)), ("B", (4, 8)))
    assert "  meta_static(s: 2, B: 4, 8)\n  meta_schedule cache() {" in metafork_text(before)
    assert program(metafork_text(before)) == before
    one = with_static_values(before, {"B": 4})
    assert one.static == (("s", (2,)),)
    assert program(metafork_text(one)).static == one.static


FRAGMENT = f"""int n, s, B;
int a[n], b[n];
#define meta_static(...) /* for compilers */
meta_static(s: 1, 2,
            B: 64)
meta_schedule {{ {LOOPS} }}
"""
NAMED = """
int meta_static(int s) { return s ? s : 1; }
void named(int n, int s, int B, const int a[n], int b[n]) { int k = meta_static(s); meta_static(k);
"""


def test_bare_fragments_and_functions_of_that_name(tmp_path):
    assert program(FRAGMENT).static == (("s", (1, 2)), ("B", (64,)))
    result = optimize(FRAGMENT, **QUICK)
    write_outputs(result, tmp_path)
    host = next(tmp_path.glob("*_host.c"))
    succeed(["gcc", "-std=gnu11", "-Wall", "-Werror", f"-I{tmp_path}", f"-I{tmp_path}/include", "-fsyntax-only", host])
    assert program(f"{NAMED} meta_schedule {{ {LOOPS} }} }}").static == ()
    assert program(f"{NAMED} meta_static(s: 3) meta_schedule {{ {LOOPS} }} }}").static == (("s", (3,)),)


@pytest.mark.parametrize(
    "where",
    [
        "#pragma metafork schedule(stages(2))\nmeta_static",
        "meta_static(s: 1)\n#pragma metafork schedule(stages(2))\n",
    ],
)
def test_a_pragma_stands_before_or_behind_it(where):
    text = ONE.replace("meta_static(s: 2, B: 4, 8)", where if where.endswith("\n") else f"\n{where}(s: 1)\n")
    read = program(text)
    assert (read.mapping.stages, read.static) == (2, (("s", (1,)),))
    assert program(metafork_text(read)) == read


def test_too_many_combinations_are_refused():
    with pytest.raises(StaticValueError, match="2000 combinations of values for input_k0; at most 1024"):
        optimize(ONE, static={"s": range(1, 1001)}, **QUICK)


def test_a_listed_name_is_a_program_parameter():
    with pytest.raises(InvariantError, match="the static q is no parameter"):
        check_program(replace(program(ONE), static=(("q", (1,)),)))


def test_commands_know_it(tmp_path):
    path = tmp_path / "one.mf"
    path.write_text(ONE)
    assert "meta_static(s: 2, B: 4, 8)" in invoke("apply", "granularity", path).output
    assert "kernels for s = 2; B = 4, 8 too: `meta_static` asks for them" in invoke("explain", path).output
    quick = ("--counters", "threads_per_block", "--strategies", "granularity", "-o", tmp_path / "out")
    said = invoke("optimize", path, *quick, "--static", "B=16").output
    assert "also compiled for s=2 B=16\n" in said
    assert invoke("optimize", path, *quick, "--static", "none").output.count("also compiled") == 0
    assert invoke("optimize", path, *quick, "--jit").exit_code == 0
    assert (
        "NVRTC compiles kernels at run time, for any values of s, B\n" in (tmp_path / "out" / "report.md").read_text()
    )
