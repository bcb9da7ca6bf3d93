"""Files are written whole or not at all; conditions are tabulated exactly."""

import os
import re
import stat
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner

from metafork.algebra.polynomial import Polynomial, at_most
from metafork.comprehensive.commands.include_dir import command
from metafork.comprehensive.emit import write_outputs
from metafork.comprehensive.emit.condition_tables import ConditionTables, TabulationError
from metafork.comprehensive.emit.outputs import rendered_files, write_files
from metafork.comprehensive.emit.targets.cuda import TARGET as CUDA
from metafork.comprehensive.emit.targets.opencl import TARGET as OPENCL
from metafork.comprehensive.emit.targets.ptx import TARGET as PTX
from metafork.comprehensive.optimize import optimize
from metafork.ir.messages.source import Source
from tests.comprehensive.emit.blend_example import code_of, example
from tests.comprehensive.metafork_command import metafork

X, Y, Q = (Polynomial.symbol(name) for name in "xyq")


def test_the_depfile_names_outputs_and_source(tmp_path):
    out = tmp_path / "with space"
    written = write_outputs(
        example(), out, code_of=code_of, depfile=tmp_path / "blend.d", extra={"report.md": "text\n"}
    )
    rule = (tmp_path / "blend.d").read_text()
    targets, source = rule.rstrip("\n").split(": ")
    assert source == "blend.mf"
    assert str(out / "blend.cu").replace(" ", "\\ ") in targets
    assert (out / "report.md").read_text() == "text\n"
    assert all(path.exists() for path in written)
    assert {path.name for path in out.iterdir()} == {
        "CMakeLists.txt",
        "blend.cu",
        "metafork_runtime.cu",
        "blend.h",
        "blend_generation.h",
        "blend_host.c",
        "include",
        "report.md",
    }


def test_an_interrupted_run_leaves_the_last_output(tmp_path):
    write_files(tmp_path, {"one": "old", "sub/two": "old"})

    class Interrupting(dict):
        def items(self):
            yield "one", "new"
            yield "sub/two", "new"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_files(tmp_path, Interrupting())
    assert (tmp_path / "one").read_text() == (tmp_path / "sub/two").read_text() == "old"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["one", "sub", "two"]


def test_files_that_do_not_change_are_left_alone(tmp_path):
    """A link is no such file: what is written replaces it."""
    write_files(tmp_path, {"one": "old", "two": "old", "sub/three": "old"})
    (tmp_path / "two").rename(tmp_path / "kept")
    (tmp_path / "two").symlink_to("kept")
    for name in ("one", "kept", "sub/three"):
        os.utime(tmp_path / name, (1, 1))
    names = ("one", "two", "sub/three")
    written = write_files(tmp_path, {"one": "old", "two": "old", "sub/three": b"new"})
    assert written == tuple(tmp_path / name for name in names)
    assert [(tmp_path / name).read_text() for name in names] == ["old", "old", "new"]
    assert [(tmp_path / name).stat().st_mtime == 1 for name in names] == [True, False, False]
    assert not (tmp_path / "two").is_symlink()


def test_a_second_run_on_one_input_changes_no_file(tmp_path):
    (tmp_path / "smooth.mf").write_text(Path("examples/smooth.mf").read_text())
    command = ["optimize", "smooth.mf", "--depfile", "smooth.d", "--emit", "ptx"]
    metafork(*command, cwd=tmp_path)
    files = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert tmp_path / "smooth.d" in files
    for path in files:
        os.utime(path, (1, 1))
    metafork(*command, cwd=tmp_path)
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == files
    assert {path.name for path in files if path.stat().st_mtime != 1} == set()


def test_outputs_can_be_read_by_others(tmp_path):
    (tmp_path / "plain").write_text("")
    write_files(tmp_path, {"one": "text"})
    assert stat.S_IMODE((tmp_path / "one").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_leaves_of_an_earlier_run_are_removed(tmp_path):
    leaves = {"leaves/blend_k0_leaf1.mf": "a", "leaves/blend_k0_leaf2.mf": "b", "leaves/notes.txt": "c"}
    write_outputs(example(), tmp_path, code_of=code_of, extra=leaves)
    write_outputs(example(), tmp_path, code_of=code_of, extra={"leaves/blend_k0_leaf1.mf": "a"})
    assert sorted(path.name for path in (tmp_path / "leaves").iterdir()) == ["blend_k0_leaf1.mf", "notes.txt"]


def test_include_dir_prints_where_the_headers_are():
    done = CliRunner().invoke(command, [])
    assert done.exit_code == 0
    assert (Path(done.stdout.strip()) / "metafork" / "machine.h").exists()


def tabulated(tables, polynomial, values):
    """Evaluate the table of a polynomial on a vector."""
    (initializer,), factor = tables.polynomials((polynomial,))
    first, count = map(int, re.fullmatch(r"\{t_p \+ (\d+), (\d+)\}", initializer).groups())
    rows = " ".join(line.split("/*")[0] for line in tables.lines())
    terms = re.findall(r"\{(-?\d+), (\d+), \{([\d, ]+)\}\}", rows)
    total = 0
    for coefficient, degree, factors in terms[first : first + count]:
        assert -(2**63) < int(coefficient) < 2**63
        product = int(coefficient)
        for slot in [int(text) for text in factors.split(",")][: int(degree)]:
            product *= values[slot]
        total += product
    return Fraction(total, factor)


@pytest.mark.parametrize(
    "polynomial",
    [
        X * X * 3 - Y + 1,
        X * Fraction(1, 6) + Y * Fraction(3, 4) - Fraction(1, 3),
        X * (2**200 + 12345) - Y * (2**63) + (2**62),
        X * -(2**63) + 1,
    ],
)
def test_tables_hold_the_polynomial(polynomial):
    tables = ConditionTables("t")
    slots = {"x": tables.add_slot("x"), "y": tables.add_slot("y")}
    tables.polynomials((polynomial,))
    values = {slots["x"]: 17, slots["y"]: -5}
    if tables.base_slot is not None:
        values[tables.base_slot] = 2**62
    assert tabulated(tables, polynomial, values) == polynomial.evaluate({"x": 17, "y": -5})


def test_a_target_multiplies_the_other_terms_with_its_denominator():
    tables = ConditionTables("t")
    x = tables.add_slot("x")
    numerator, denominator = tables.add_target("q")
    polynomial = Q * Q * X - X + 2
    values = {x: 7, numerator: 3, denominator: 5}
    expected = polynomial.evaluate({"x": 7, "q": Fraction(3, 5)}) * 25
    assert tabulated(tables, polynomial, values) == expected


@pytest.mark.parametrize("polynomial", [Y, X**16, X**15 * (2**70)])
def test_what_the_runtime_cannot_evaluate_is_refused(polynomial):
    tables = ConditionTables("t")
    tables.add_slot("x")
    with pytest.raises(TabulationError):
        tables.condition(at_most(polynomial, 1))


@pytest.mark.parametrize("body", [";", "{ int z = a[i * B + j]; }"])
@pytest.mark.parametrize("target", [CUDA, PTX, OPENCL], ids=["cuda", "ptx", "opencl"])
def test_a_kernel_that_does_nothing_has_code(body, target):
    text = (
        "void f(int n, int B, int a[n]) { meta_schedule { meta_for (int i = 0; i < n / B; i++) "
        f"meta_for (int j = 0; j < B; j++) {body} }} }}"
    )
    result = optimize(Source("f.mf", text), counters=("threads_per_block",))
    assert "f_k0_leaf1" in "".join(rendered_files(result, target=target).values())


def test_leaves_share_what_their_launches_compute(monkeypatch):
    result = optimize(Path(__file__).parents[3] / "examples" / "jacobi1d.mf", order="paper", static="none")
    leaves = len(result.schedules[0].leaves)
    assert leaves > 1

    def functions():
        (text,) = (text for name, text in rendered_files(result).items() if name.endswith("jacobi1d.cu"))
        return len(re.findall(r"^static int64_t \w+_number\d+\(", text, re.MULTILINE))

    assert functions() == 1
    monkeypatch.setattr("metafork.comprehensive.emit.launch_text._MAX_SHARED", -1)
    assert functions() == leaves
