"""Registers of instances: each has its own number within limits, the same in the tree, in Python and in C."""

import json
import re
from itertools import product
from math import ceil

import jsonschema
import pytest
from click.testing import CliRunner

from comprehensive.cli import cli
from comprehensive.emit import select_text
from comprehensive.optimize import optimize
from comprehensive.tree.selection import select
from comprehensive.tree.tree_json import SCHEMA, to_json
from comprehensive.tree.tree_reading import from_json
from comprehensive.verification import Options, verify
from metafork.algebra.polynomial import at_most
from metafork.analysis.analyses import NVIDIA, Hardware, NotCountedError
from metafork.printing.cuda import kernel_text
from metafork.runtime.machine import DEFAULT
from tests.comprehensive.instances.shift_program import SHIFT, built
from tests.runtime.compiling import CPLUSPLUS, INCLUDE, run, succeed

COUNTED = {
    "counters": ("threads_per_block", "registers_per_thread", "registers_per_block", "shared_memory"),
    "strategies": ("granularity", "caching"),
    "order": "paper",
}
DYNAMIC = 12


def hardware(registers):
    """Return hardware on which an instance for ``s`` takes these registers; a string is why that is not known."""

    def count(kernel, _):
        if any(argument.name == "s" for argument in kernel.scalars):
            return DYNAMIC
        (found,) = set(re.findall(r"k < (\d+)", kernel_text(kernel))) or {"1"}
        number = registers.get(int(found), DYNAMIC)
        if isinstance(number, str):
            raise NotCountedError(number)
        return number

    return Hardware(count_registers=count)


def counted(registers, **options):
    static = {"s": tuple(registers), **options.pop("static", {})}
    return optimize(SHIFT, static=static, hardware=hardware(registers), **COUNTED, **options)


REGISTERS = {1: 27, 2: 30, 4: 35, 8: 47}


@pytest.fixture(scope="module")
def placed():
    """Return instances whose blocks have a number of threads too."""
    return counted(REGISTERS, static={"B": (4,)})


@pytest.fixture(scope="module")
def free():
    """Return instances whose blocks are of any shape."""
    return counted({1: 20, 2: 20, 3: 60, 4: 61, 6: 21})


def systems(result, leaf=1):
    (tree,) = result.schedules
    schedule = result.document.schedules[0]
    return [[schedule.text(c) for c in one.system] for one in tree.leaves[leaf - 1].instances]


def notes(result):
    return [sentence for subject, sentence in result.schedules[0].notes if subject.startswith("instances")]


def test_each_instance_has_its_own_number(placed, free):
    numbers = REGISTERS.values()
    assert systems(placed) == [[f"{number} <= R", f"{32 * number} <= RB"] for number in numbers]
    assert systems(free) == [[f"{number} <= R", f"{32 * number}*warps <= RB"] for number in (20, 20, 60, 61, 21)]


TILED = """
void tiled(int N, int B, int s, const int a[N], int b[N]) {
  int dim = (N - 8) / B;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < (B + s - 1) / s; j++)
        for (int k = 0; k < s; k++) {
          int p = i * B + j * s + k;
          if (j * s + k < B)
            b[p] = a[p] + a[p + 1];
        }
  }
}
"""


def test_a_block_shape_that_the_leaf_has_not_gets_a_symbol():
    result = optimize(TILED, static={"s": (4, 8)}, hardware=hardware({4: 20, 8: 30}), **COUNTED)
    (schedule,) = result.document.schedules
    for instance in schedule.leaves[0].instances:
        s = instance.values["s"]
        (name,) = {name for one in instance.system for name in one.symbols if name.startswith("warps")}
        for block in (s, s + 1, 17 * s, 100 * s + 3):
            point = {"N": 9999, "B": block, "s": s}
            for symbol in schedule.derived:
                point[symbol.name] = symbol.evaluate(point)
            assert point[name] == ceil(ceil(block / s) / 32)
    assert len(schedule.leaves[0].instances) == 2


def test_report_and_json_have_them(placed, free):
    report = placed.to_report()
    assert "when `s = 4, B = 4` and `35 <= R` and `1120 <= RB`; registers_per_thread `35`; " in report
    assert "when `s = 4` and `61 <= R` and `1952*warps <= RB`; registers_per_thread `61`; " in free.to_report()
    for result in (placed, free):
        document = json.loads(result.to_json())
        jsonschema.validate(document, json.loads(SCHEMA.read_text()))
        assert document["version"] == 2
        assert to_json(from_json(document)) == document
        (leaf, *_) = from_json(document).schedules[0].leaves
        assert [one.system for one in leaf.instances] == [one.system for one in result.schedules[0].leaves[0].instances]


def test_conditions_of_older_documents_are_read(placed):
    """They had one polynomial for several instances."""
    document = json.loads(placed.to_json())
    for leaf in document["schedules"][0]["leaves"]:
        for instance in leaf["instances"]:
            instance["system"] = ["3*s + 24 <= R"]
    again = from_json(document)
    assert to_json(again) == document
    limits = {"R": 36, "RB": 1000} | {name: 10**6 for name in again.schedules[0].machine if name not in ("R", "RB")}
    at = [select(again.schedules[0], {"N": 100, "B": 4, "s": s, **limits}) for s in (4, 8)]
    assert [one.instance is None for one in at] == [False, True]
    assert at[1].passed_over is not None


def test_the_registers_are_asked_for_where_the_tree_counts_them():
    for names, limits in (
        (["registers_per_thread"], {"R"}),
        (["registers_per_block"], {"RB"}),
        (["shared_memory"], None),
    ):
        options = {**COUNTED, "counters": names}
        (tree,) = optimize(
            SHIFT, static={"s": (1, 8), "B": (4,)}, hardware=hardware({1: 27, 8: 48}), **options
        ).schedules
        (first, *_) = tree.leaves
        assert len(first.instances) == 2
        assert {frozenset(c.right.symbols) for one in first.instances for c in one.system} == (
            {frozenset(limits)} if limits else set()
        )


def test_an_instance_whose_registers_are_not_known_is_left_out():
    result = counted({2: 20, 4: "too long", 8: 21}, static={"B": (4,)})
    (first, *_) = result.schedules[0].leaves
    assert [one.values["s"] for one in first.instances] == [2, 8]
    assert "none for s = 4, B = 4: no code: too long" in notes(result)


def test_an_instance_that_no_machine_has_the_registers_for_is_left_out():
    result = counted({2: 20, 4: 300, 8: 21}, static={"B": (4,)}, machine=NVIDIA.machines)
    assert [one.values["s"] for one in result.schedules[0].leaves[0].instances] == [2, 8]
    never = "none for s = 4, B = 4: 300 <= 255 and 9600 <= 65536 holds nowhere where the leaf is chosen with them"
    assert never in notes(result)
    # With 1024 threads, 70 registers are more than any supported machine gives a block.
    result = counted({2: 70, 4: 60}, static={"B": (1024,)}, machine=NVIDIA.machines)
    assert [one.values["s"] for one in result.schedules[0].leaves[0].instances] == [4]
    # A machine of one's own may have them.
    result = counted({4: 300}, static={"B": (4,)}, machine="R=400")
    assert [one.values["s"] for one in result.schedules[0].leaves[0].instances] == [4]


def launched(program, machine, s):
    """Return what the drop-in took (leaf, instance), `launch`'s instance of leaf 1, and the conditions that failed."""
    limits = ",".join(f"{name}={value}" for name, value in machine.items())
    done = run([program, s], env={"METAFORK_TRACE": "1", "METAFORK_STRICT": "1", "METAFORK_MACHINE": limits})
    assert done.returncode == 0, done.stderr
    traced = re.findall(r"^metafork: input_k0 leaf (\d+) .*?(?: instance=(\d+))?$", done.stderr, re.MULTILINE)
    (leaf, own), (_, other) = ((int(leaf), int(number or 0)) for leaf, number in traced)
    return (
        leaf,
        own,
        other,
        re.findall(r"^metafork:   instance \d: (.*) is violated: \d+ <= \d+$", done.stderr, re.MULTILINE),
    )


@pytest.mark.parametrize("which", ["placed", "free"])
@pytest.mark.sampled(1)
def test_python_and_c_take_the_same_instance_at_the_bounds(which, request, tmp_path):
    result = request.getfixturevalue(which)
    (schedule,) = result.document.schedules
    leaf = schedule.leaves[0]
    program = built(result, tmp_path)
    taken = set()
    for one in leaf.instances:
        # B = 4 is one warp.
        (need,) = {c.left.evaluate({**one.values, "warps": 1}) for c in one.system if c.right.symbols == {"R"}}
        for below, block in product((0, 1), repeat=2):
            machine = {"R": int(need) - below, "RB": 32 * int(need) - block}
            point = {
                "N": 100,
                "B": 4,
                **one.values,
                **DEFAULT.fields(),
                "T": 1024,
                "Z": DEFAULT.shared_words,
                **machine,
            }
            selection = select(schedule, point)
            expected = 0 if selection.instance is None else selection.instance.number
            assert expected == (0 if below or block else one.number)
            assert (selection.passed_over is None) == (expected > 0)
            *kernels, missed = launched(program, machine, one.values["s"])
            assert kernels == [selection.leaf, expected, expected]
            assert missed == [violation.condition for violation in selection.missed[:1]] * 2
            taken.add(expected)
    assert taken == {0, *(one.number for one in leaf.instances)}


def test_select_says_which_condition_an_instance_misses(placed, tmp_path):
    (tmp_path / "shift.tree.json").write_text(placed.to_json())

    def said(machine, *more):
        values = ["N=100", "B=4", "s=4", "--machine", f"sm_80,{machine}"]
        done = CliRunner().invoke(cli, ["select", str(tmp_path), *values, *more])
        assert done.exit_code == 0
        return done.output

    needs = "35 <= R and 1120 <= RB"
    assert f"  instance 3, input_k0_leaf1_instance3: s = 4, B = 4, which needs {needs}\n" in said("R=35")
    missed = "35 <= R does not hold: 35 > 34"
    assert f"  not instance 3: {missed}: the dynamic kernel runs\n" in said("R=34")
    (found,) = json.loads(said("R=34", "--json"))["schedules"]
    assert found["instance"] is None
    assert found["passed_over"] == {"instance": "input_k0_leaf1_instance3", "missed": [missed]}
    (found,) = json.loads(said("R=35", "--json"))["schedules"]
    assert found["instance"] == "input_k0_leaf1_instance3"
    assert "passed_over" not in found


OPTIONS = Options(points=16, optimization="-O0", dataflow_seconds=0, races=False)


@pytest.mark.slow
def test_instances_are_verified_on_both_sides_of_their_conditions(placed):
    found = verify(placed, options=OPTIONS)
    assert found.passed, found.table()
    assert found.not_verified == ()
    row = found.leaves[0]
    assert set(row.instances) == {1, 2, 3, 4}
    assert any("is one below what another leaf or instance needs" in mark for mark in row.marks)


@pytest.mark.slow
def test_with_a_machine_that_has_the_registers_of_some_instances_these_run():
    found = verify(counted(REGISTERS, static={"B": (4,)}, machine="R=36,RB=1000"), options=OPTIONS)
    assert found.passed, found.table()
    # 32 threads of 35 registers are too many for the block.
    assert set(found.leaves[0].instances) == {1, 2}
    assert found.not_verified == ()


def planted(leaf, tables):
    """Give the last instance a condition that never holds, and the others none."""
    return [(), (), (), (tables.condition(at_most(1, 0)),)]


@pytest.mark.slow
def test_a_dispatcher_with_other_conditions_is_noticed(placed, monkeypatch):
    monkeypatch.setattr(select_text, "_conditions_of_instances", planted)
    failures = verify(placed, options=OPTIONS).failures
    found = {re.sub(r"instance [123]", "instance", failure.message) for failure in failures}
    missed = "the dynamic kernel ran where the tree gives instance 4, for s = 8, B = 4"
    assert found <= {"instance ran where the tree gives the dynamic one", missed}
    assert len(found) == 2


FITTING = """
#include "metafork/dispatch.h"
enum { R };
static const metafork_term of_r[] = {{1, 1, {R}}}, need[] = {{36, 0, {0}}}, dynamic[] = {{12, 0, {0}}};
static const metafork_condition needs[] = {{{need, 1}, METAFORK_AT_MOST, {of_r, 1}, "36 <= R"}};
static const metafork_system instances[] = {{needs, 1}};
static const metafork_limit limits[] = {
    {"registers_per_thread", {{dynamic, 1}, METAFORK_AT_MOST, {of_r, 1}, "12 <= R"}, METAFORK_REGISTERS_PER_THREAD}};
static const metafork_leaf leaves[] = {{limits, 1, instances, 1}};
static const metafork_schedule schedule = {"k", leaves, 1, nullptr, 0, nullptr, 0, nullptr, 0, nullptr};
static bool fits(int64_t limit, int64_t used, int instance) {
  const int64_t values[] = {limit};
  const metafork_bounds one = {&schedule, 1, values, 32};
  metafork_shape shape = {};
  shape.instance = instance, shape.registers = used;
  return metafork_instance_fits(&one, &shape);
}
int main() {
  const bool got[] = {
      fits(36, -1, 1), fits(35, -1, 1),                   /* nobody measured them */
      fits(36, 36, 1), fits(36, 37, 1), fits(35, 30, 1),  /* as compiled too */
      fits(35, 30, METAFORK_COMPILED), fits(35, 36, METAFORK_COMPILED)};
  for (bool one : got) printf("%d", one);
}
"""


def test_an_instance_has_to_fit_as_compiled_too(tmp_path):
    (tmp_path / "fitting.cpp").write_text(FITTING)
    succeed([*CPLUSPLUS, f"-I{INCLUDE}", tmp_path / "fitting.cpp", "-o", tmp_path / "fitting"])
    assert run([tmp_path / "fitting"]).stdout == "1010010"
