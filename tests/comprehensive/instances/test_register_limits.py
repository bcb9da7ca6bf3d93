"""Registers of instances: each has its own number within limits, the same in the tree, in Python and in C."""

import json
import re
from itertools import product
from math import ceil

import jsonschema
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from metafork.algebra.polynomial import at_most
from metafork.analysis.analyses import NVIDIA, Hardware, NotCountedError
from metafork.comprehensive.cli import cli
from metafork.comprehensive.emit import select_text
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.tree.selection import select
from metafork.comprehensive.tree.tree_json import SCHEMA, to_json
from metafork.comprehensive.tree.tree_reading import from_json
from metafork.comprehensive.verification import Options, verify
from metafork.printing.cuda import kernel_text
from metafork.runtime.machine import DEFAULT
from tests.comprehensive.instances.shift_program import SHIFT, built
from tests.runtime.compiling import run

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
ALLOTTED = {12: 16, 20: 24, 21: 24, 27: 32, 30: 32, 35: 40, 47: 48, 60: 64, 61: 64}
"""What the hardware hands out to a thread that needs so many; four warps get them together."""


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
    return [[schedule.text(c) for c in one.limits] for one in tree.leaves[leaf - 1].instances]


def notes(result):
    return [sentence for subject, sentence in result.schedules[0].notes if subject.startswith("instances")]


def test_each_instance_has_its_own_number(placed, free):
    numbers = REGISTERS.values()
    assert systems(placed) == [[f"{number} <= R", f"{128 * ALLOTTED[number]} <= RB"] for number in numbers]
    assert systems(free) == [
        [f"{number} <= R", f"{128 * ALLOTTED[number]}*quads <= RB"] for number in (20, 20, 60, 61, 21)
    ]


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
    instances = [one for one in schedule.leaves[0].variants if one.values]
    for instance in instances:
        s = instance.values["s"]
        (name,) = {name for one in instance.limits for name in one.symbols if name.startswith("quads")}
        for block in (s, s + 1, 17 * s, 100 * s + 3):
            point = {"N": 9999, "B": block, "s": s}
            for symbol in schedule.derived:
                point[symbol.name] = symbol.evaluate(point)
            assert point[name] == ceil(ceil(block / s) / 128)
    assert len(instances) == 2


def test_report_and_json_have_them(placed, free):
    report = placed.to_report()
    assert "for s = 4, B = 4, needs 35 registers per thread and 5120 registers per block\n" in report
    assert "for s = 4, needs 61 registers per thread and 8192*ceil(B/128) registers per block\n" in free.to_report()
    for result in (placed, free):
        document = json.loads(result.to_json())
        jsonschema.validate(document, json.loads(SCHEMA.read_text()))
        assert to_json(from_json(document)) == document
        (leaf, *_) = from_json(document).schedules[0].leaves
        assert [one.limits for one in leaf.variants] == [one.limits for one in result.schedules[0].leaves[0].variants]


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
        asked = {frozenset(c.right.symbols) for one in first.instances for c in one.limits}
        assert asked == ({frozenset(limits)} if limits else set())


def test_an_instance_whose_registers_are_not_known_is_left_out():
    result = counted({2: 20, 4: "too long", 8: 21}, static={"B": (4,)})
    (first, *_) = result.schedules[0].leaves
    assert [one.values["s"] for one in first.instances] == [2, 8]
    assert "none for s = 4, B = 4: no code: too long" in notes(result)


def test_an_instance_that_no_machine_has_the_registers_for_is_left_out():
    result = counted({2: 20, 4: 300, 8: 21}, static={"B": (4,)}, machine=NVIDIA.machines)
    assert [one.values["s"] for one in result.schedules[0].leaves[0].instances] == [2, 8]
    never = "none for s = 4, B = 4: 300 <= 255 holds nowhere where the leaf is chosen with them"
    assert never in notes(result)
    # With 1024 threads, 70 registers are more than any supported machine gives a block.
    result = counted({2: 70, 4: 60}, static={"B": (1024,)}, machine=NVIDIA.machines)
    assert [one.values["s"] for one in result.schedules[0].leaves[0].instances] == [4]
    # A machine of one's own may have them.
    result = counted({4: 300}, static={"B": (4,)}, machine="R=400")
    assert [one.values["s"] for one in result.schedules[0].leaves[0].instances] == [4]


def launched(program, machine, s):
    """Return what the drop-in took (leaf, variant), `launch`'s variant of leaf 1, and the limits that failed."""
    limits = ",".join(f"{name}={value}" for name, value in machine.items())
    done = run([program, s], env={"METAFORK_TRACE": "1", "METAFORK_STRICT": "1", "METAFORK_MACHINE": limits})
    assert done.returncode == 0, done.stderr
    traced = re.findall(r"^metafork: input_k0 leaf (\d+) .* variant=(\d+)$", done.stderr, re.MULTILINE)
    (leaf, own), (_, other) = (map(int, one) for one in traced)
    return (
        leaf,
        own,
        other,
        re.findall(r"^metafork:   leaf 1, variant \d: (.*) is violated: \d+ <= \d+$", done.stderr, re.MULTILINE),
    )


@pytest.mark.parametrize("which", ["placed", "free"])
@pytest.mark.sampled(1)
def test_python_and_c_take_the_same_variant_at_the_bounds(which, request, tmp_path):
    result = request.getfixturevalue(which)
    (schedule,) = result.document.schedules
    *instances, own = schedule.leaves[0].variants
    program = built(result, tmp_path)
    taken = set()
    for one in instances:
        # B = 4 is one warp, and takes as much as four.
        (need,) = {c.left.evaluate({**one.values, "quads": 1}) for c in one.limits if c.right.symbols == {"R"}}
        for below, block in product((0, 1), repeat=2):
            machine = {"R": int(need) - below, "RB": 128 * ALLOTTED[int(need)] - block}
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
            expected = own if below or block else one
            assert selection.variant == expected
            *kernels, missed = launched(program, machine, one.values["s"])
            assert kernels == [selection.leaf, expected.number, expected.number]
            assert [passed for passed, _ in selection.passed_over] == ([one] if expected is own else [])
            assert missed == [one.condition for _, violations in selection.passed_over for one in violations] * 2
            taken.add(expected.number)
    assert taken == {one.number for one in (*instances, own)}


def test_select_says_which_limit_an_instance_misses(placed, tmp_path):
    (tmp_path / "shift.tree.json").write_text(placed.to_json())

    def said(machine, *more):
        values = ["N=100", "B=4", "s=4", "--machine", f"sm_80,{machine}"]
        done = CliRunner().invoke(cli, ["select", str(tmp_path), *values, *more])
        assert done.exit_code == 0
        return done.output

    assert "  variant 3, input_k0_leaf1_v3: for s = 4, B = 4\n" in said("R=35")
    missed = "fewer than 35 registers per thread (R): 35 > 34"
    exact = "35 <= R does not hold: 35 > 34"
    assert "  variant 5, input_k0_leaf1\n" in said("R=34")
    assert f"  not variant 3 (for s = 4, B = 4): {missed}\n" in said("R=34")
    (found,) = json.loads(said("R=34", "--json"))["schedules"]
    assert (found["variant"], found["passed_over"]) == (5, {"input_k0_leaf1_v3": [exact]})
    (found,) = json.loads(said("R=35", "--json"))["schedules"]
    assert (found["variant"], found["passed_over"]) == (3, {})


OPTIONS = Options(points=16, optimization="-O0", dataflow_seconds=0, races=False)


@pytest.mark.slow
def test_instances_are_verified_on_both_sides_of_their_limits(placed):
    found = verify(placed, options=OPTIONS)
    assert found.passed, found.table()
    assert found.not_verified == ()
    rows = [row for row in found.rows if row.leaf == 1]
    assert [row.for_values for row in rows] == [True] * 4 + [False]
    assert any("is one below what another leaf or variant needs" in mark for mark in rows[-1].marks)


@pytest.mark.slow
def test_with_a_machine_that_has_the_registers_of_some_instances_these_run():
    found = verify(counted(REGISTERS, static={"B": (4,)}, machine="R=36,RB=5000"), options=OPTIONS)
    assert found.passed, found.table()
    # Four warps of 40 allotted registers are too many for the block.
    assert [row.title for row in found.rows if row.leaf == 1] == ["for s = 1, B = 4", "for s = 2, B = 4", ""]
    assert found.not_verified == ()


@pytest.mark.slow
def test_a_dispatcher_with_other_limits_is_noticed(placed, monkeypatch):
    """The last instance never runs, and the others run on every machine."""
    variant = select_text._Variants._variant

    def planted(self, one, code):
        if one.values:
            never = (at_most(1, 0),) if one.values["s"] == 8 else ()
            one = replace(one, limits=never, counters={})
        return variant(self, one, code)

    monkeypatch.setattr(select_text._Variants, "_variant", planted)
    failures = verify(placed, options=OPTIONS).failures
    found = {re.sub("variant [123]", "an instance", one.message) for one in failures if one.leaf == 1}
    assert found == {
        "an instance ran where the tree gives variant 5",
        "variant 5 ran where the tree gives variant 4",
    }
