"""Instances of leaves for values of static parameters: which are made, what they hold, and where they run."""

import dataclasses
import json
import re
from pathlib import Path

import jsonschema
import pytest
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.comprehensive.emit import leaf_code, write_outputs
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.options import StaticValueError, static_values
from metafork.comprehensive.registry import UnknownNameError
from metafork.comprehensive.tree.schedule_tree import numbered
from metafork.comprehensive.tree.selection import select
from metafork.comprehensive.tree.tree_json import SCHEMA, to_json
from metafork.comprehensive.tree.tree_reading import from_json
from metafork.comprehensive.verification import Options, verify
from metafork.comprehensive.verification.point_choice import chosen_points
from metafork.comprehensive.verification.points import Points
from metafork.evaluators.shared_memory import COUNTER as SHARED_MEMORY
from metafork.ir.kernel import Space
from metafork.ir.program import IntConst
from metafork.ir.static_values import with_static_values
from metafork.lowering.lowering import lower
from metafork.printing.cuda import kernel_text
from tests.comprehensive.instances.shift_program import SHIFT, built
from tests.metafork.programs import MATMUL, program
from tests.runtime.compiling import needs_nvcc, run, succeed

QUICK = {"counters": ("threads_per_block", "shared_memory"), "strategies": ("cse1", "granularity", "caching")}
OPTIONS = Options(points=6, optimization="-O0", dataflow_seconds=0)
TYPES = """
void types(int N, short s, unsigned B, long long K, long long a[N]) {
  int dim = N / (B * s);
  meta_schedule cache(a) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++)
        for (int k = 0; k < s; k++)
          for (long long z = 0; z < K; z++)
            a[(i * s + k) * B + j] = a[(i * s + k) * B + j] % 9999 * (K - 5)
                - (unsigned char)s / 2 + (s > 2 ? 2147483647 + K : z);
  }
}
"""


@pytest.fixture(scope="module")
def shift():
    return optimize(SHIFT, static={"s": (1, 3), "B": (4,)}, machine="all", **QUICK)


def kernels(result):
    (tree,) = result.schedules
    return {one.kernel: one for leaf in tree.leaves for one in leaf.instances}


def notes(result):
    return [sentence for subject, sentence in result.schedules[0].notes if subject.startswith("instances")]


def test_what_has_a_constant_extent_only_with_the_values_is_kept_in_registers():
    result = optimize(MATMUL, static={"s": (4,), "B0": (16,), "ub1": (16,)}, **QUICK)
    leaf = result.schedules[0].leaves[0]
    dynamic, static = (leaf_code(one).kernel for one in (leaf.own, leaf.instances[0]))
    assert [memory.space for memory in dynamic.memories].count(Space.PRIVATE) == 0
    (private,) = (memory for memory in static.memories if memory.space is Space.PRIVATE)
    assert private.extent == IntConst(4)
    assert {argument.name for argument in static.scalars}.isdisjoint({"s", "B0", "ub1"})


def test_a_leaf_has_at_most_eight_instances_the_first_of_the_order_given():
    result = optimize(SHIFT, static={"B": (2, 4, 8), "s": (5, 1, 3)}, **QUICK)
    leaf = result.schedules[0].leaves[0]
    pairs = [(one.values["B"], one.values["s"]) for one in leaf.instances]
    assert pairs == [(2, 5), (2, 1), (2, 3), (4, 5), (4, 1), (4, 3), (8, 5), (8, 1)]
    assert "none tried for B = 8, s = 3: a leaf has at most 8, the first of the order given" in notes(result)
    assert [one.kernel for one in leaf.variants] == [*(f"input_k0_leaf1_v{n}" for n in range(1, 9)), "input_k0_leaf1"]
    assert "- variant 2, `input_k0_leaf1_v2`: for B = 2, s = 1\n" in result.to_report()


def test_values_with_which_a_leaf_is_never_chosen_take_no_place():
    result = optimize(
        SHIFT.replace("int dim", "assert(s * B <= 12);\n  int dim"), static={"s": (4, 2), "B": (4,)}, **QUICK
    )
    assert {one.values["s"] for one in kernels(result).values()} == {2}
    assert "none for s = 4, B = 4: the leaf is never chosen with them" in notes(result)


def test_a_kernel_that_does_not_depend_on_the_values_is_not_compiled_again():
    text = "void f(int N, int B, int q, int a[N]) { assert(q < N); int dim = N / B; meta_schedule { meta_for (int i = 0; i < dim; i++) meta_for (int j = 0; j < B; j++) a[i * B + j] = 0; } }"  # noqa: E501
    result = optimize(text + "\n", static={"B": (8,)}, counters=("threads_per_block",), strategies=())
    assert [one.values for one in kernels(result).values()] == [{"B": 8}]
    text = text.replace("a[i * B + j] = 0", "if (q < N) a[i * B + j] = 0")
    result = optimize(text + "\n", static={"q": (2,), "B": (8, 9)}, counters=("threads_per_block",), strategies=())
    assert len(kernels(result)) == 2


def test_leaves_of_register_pressure_strategies_have_none():
    result = optimize(SHIFT, static={"s": (2,)}, machine="R=63", strategies=("register_pressure1",))
    pressed = [leaf for leaf in result.schedules[0].leaves if leaf.version.ir_strategies]
    assert all(not leaf.instances for leaf in pressed)
    assert any(leaf.instances for leaf in result.schedules[0].leaves)


@pytest.mark.parametrize(
    ("static", "error", "message"),
    [
        ({"t": (1,)}, UnknownNameError, "there is no program parameter 't'"),
        ({"N": (8,)}, StaticValueError, "N is no program parameter: it sizes an array"),
        ({"s": (2, 0)}, StaticValueError, "s = 0: a static parameter is at least 1"),
        ({"s": (1 << 31,)}, StaticValueError, "what its type can hold"),
        ({"s": ()}, StaticValueError, "there is no value of s"),
    ],
)
def test_values_that_cannot_be_used_are_refused(static, error, message):
    with pytest.raises(error, match=message):
        optimize(SHIFT, static=static, **QUICK)


@pytest.mark.parametrize("texts", [("s",), ("s=1,x",), ("s=",), ("=1",), ("s=1", "s=2")])
def test_options_that_say_nothing_are_refused(texts):
    with pytest.raises(StaticValueError):
        static_values(texts)


def test_options_are_read_in_order():
    assert list(static_values(("s=4,1", "B0= 16")).items()) == [("s", (4, 1)), ("B0", (16,))]


def test_the_tree_has_them_and_comes_back(shift):
    document = json.loads(shift.to_json())
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    first, second, own = document["schedules"][0]["leaves"][0]["variants"]
    assert [first["values"], second["values"]] == [{"s": 1, "B": 4}, {"s": 3, "B": 4}]
    assert (second["kernel"], own["kernel"]) == ("input_k0_leaf1_v2", "input_k0_leaf1")
    assert "values" not in own
    assert to_json(from_json(document)) == document
    variants = from_json(document).schedules[0].leaves[0].variants
    assert [one.values for one in variants] == [one.values for one in shift.schedules[0].leaves[0].variants]


def test_without_instances_nothing_changes(shift, tmp_path):
    plain = optimize(SHIFT, machine="all", **QUICK)
    leaves = [
        tuple(
            replace(leaf, variants=numbered(leaf.kernel, [one for one in leaf.variants if not one.values]))
            for leaf in tree.leaves
        )
        for tree in shift.schedules
    ]
    trees = tuple(dataclasses.replace(tree, leaves=own) for tree, own in zip(shift.schedules, leaves, strict=True))
    without = dataclasses.replace(shift, schedules=trees)
    without.__dict__.pop("document", None)
    assert without.to_json() == plain.to_json()
    for result, name in ((plain, "plain"), (without, "without")):
        write_outputs(result, tmp_path / name)
    for path in (tmp_path / "plain").rglob("*"):
        if path.is_file():
            assert path.read_text() == (tmp_path / "without" / path.relative_to(tmp_path / "plain")).read_text()


def test_select_names_the_instance(shift):
    (schedule,) = shift.document.schedules
    point = {"N": 100, "B": 4} | dict.fromkeys(schedule.machine, 1024)
    assert [select(schedule, {**point, "s": s}).variant.number for s in (1, 3, 2)] == [1, 2, 3]


@pytest.mark.parametrize("text", [SHIFT, TYPES])
@pytest.mark.sampled(1)
def test_instances_run_and_give_the_serial_result(text):
    static = {"s": (3, 2), "B": (8,)} | ({"K": (3,)} if "K" in text else {})
    found = verify(text, static=static, machine="all", options=OPTIONS, **QUICK)
    assert found.passed, found.table()
    assert found.not_verified == ()
    for leaf in {row.leaf for row in found.rows}:
        assert [row.for_values for row in found.rows if row.leaf == leaf] == [True, True, False]
    assert all(row.points for row in found.rows)


@pytest.mark.slow
def test_an_instance_that_never_ran_is_not_verified():
    found = verify(SHIFT, static={"B": (4, 64), "s": (64,)}, machine="T=1024", options=OPTIONS, **QUICK)
    assert found.passed, found.table()
    assert found.not_verified == ()
    found.rows[0].points = 0
    assert [row.kernel for row in found.not_verified] == ["input_k0_leaf1_v1"]
    assert "leaf 1, variant 1 (for B = 4, s = 64): it never ran" in found.table()


def test_every_variant_has_a_point_even_where_few_are_wanted():
    (tree,) = optimize(SHIFT, static={"s": (3, 2), "B": (4, 32)}, **QUICK).schedules
    points = chosen_points(Points(tree), 8, 3000)
    assert set(points) == {(leaf.id, one.number) for leaf in tree.leaves for one in leaf.variants}
    assert all(points.values())


def damaged(variant):
    """Return the code of a variant; the second one's writes one element too many by 1."""
    code = leaf_code(variant)
    if not variant.kernel.endswith("leaf1_v2"):
        return code
    text = re.sub(r"(b\[[^;]*\]) = ([^;]*);", r"\1 = \2 + 1;", code.text)
    assert text != code.text
    return replace(code, text=text)


def test_a_wrong_instance_is_noticed(shift):
    failures = verify(shift, options=replace(OPTIONS, races=False), code_of=damaged).failures
    assert {(failure.check, failure.leaf, failure.variant) for failure in failures} == {("code", 1, 2)}
    assert all("s=3, B=4" in re.sub(r"(B=4), (s=3)", r"\2, \1", failure.point) for failure in failures)


def misled(variant):
    """Return the code of a variant; instances are told blocks of one thread more."""
    code = leaf_code(variant)
    text = re.sub(r"METAFORK_THREADS\(x, (\d+)u\)", lambda m: f"METAFORK_THREADS(x, {int(m[1]) + 1}u)", code.text)
    assert (text != code.text) == bool(variant.values)
    return replace(code, text=text)


@pytest.mark.slow
def test_what_an_instance_is_told_of_its_blocks_is_checked(shift):
    failures = verify(shift, options=replace(OPTIONS, races=False), code_of=misled).failures
    assert failures
    assert all("other threads than its kernel was told" in failure.message for failure in failures)


def driven(result, directory, values, **options):
    """Return which variants the drop-in and ``launch`` ran, for each value of s."""
    driver = built(result, directory, **options)
    found = []
    for value in values:
        done = run([driver, str(value)], env={"METAFORK_TRACE": "1", "METAFORK_STRICT": "1"})
        assert done.returncode == 0, done.stderr
        traced = re.findall(r"^metafork: input_k0 leaf \d+ .* variant=(\d+)$", done.stderr, re.MULTILINE)
        found.append(list(map(int, traced)))
    return found


def test_the_instance_of_the_arguments_runs_in_the_drop_in_and_in_launch(shift, tmp_path):
    assert driven(shift, tmp_path, (1, 3, 2)) == [[1, 1], [2, 2], [3, 3]]


def test_launch_variant_takes_the_one_that_is_asked_for(shift, tmp_path):
    """An instance takes its own values alone."""
    driver = built(shift, tmp_path)
    for s, codes in ((1, [-1, 0, -1, 0, -1]), (3, [-1, -1, 0, 0, -1]), (2, [-1, -1, -1, 0, -1])):
        for variant, code in enumerate(codes):
            done = run([driver, str(s), str(variant)], env={"METAFORK_TRACE": "1"})
            assert done.stdout == f"{code}\n"
            assert (f" variant={variant}\n" in done.stderr) == (code == 0)


def test_a_local_of_the_same_name_stays():
    text = SHIFT.replace("int p =", "int t = s; int s = 7 + t; int p =").replace("a[p + 1]", "a[p + 1] + s")
    text = text.replace("(i * s + k)", "(i * t + k)")
    kernel = kernel_text(lower(with_static_values(program(text), {"s": 3}), "k"))
    assert re.search(r"int s(_\d)? = 7 \+ t", kernel)
    assert "int t = 3" in kernel


@needs_nvcc
@pytest.mark.slow
def test_nvcc_takes_instances(shift, tmp_path):
    write_outputs(shift, tmp_path)
    flags = ["-arch=sm_80", "-fmad=false", "-Xptxas=-v", f"-I{tmp_path}", f"-I{tmp_path}/include"]
    done = succeed(["nvcc", *flags, "-c", tmp_path / "input.cu", "-o", tmp_path / "a.o"])
    assert "METAFORK_THREADS(x, 4u)" in (tmp_path / "input.cu").read_text()
    assert set(kernels(shift)) <= set(re.findall(r"entry function '(\w+)'", done.stdout + done.stderr))


@pytest.mark.slow
def test_instances_take_no_more_shared_memory_than_their_leaf():
    """Of four results at a time the leaf keeps four in shared memory, where an instance for six could keep all."""
    (tree,) = optimize(
        Path(__file__).parents[3] / "examples" / "matmul.mf", static={"s": (6,), "B0": (8,), "ub1": (32,)}
    ).schedules
    values = {"n": 192, "s": 6, "B0": 8, "ub1": 32}
    made = 0
    for leaf in tree.leaves:
        for instance in leaf.instances:
            own, its = (
                SHARED_MEMORY.evaluate(version, Analyses()).numerator.evaluate(values)
                for version in (instance.version, leaf.version)
            )
            assert own <= its, leaf.id
            made += 1
    assert made
