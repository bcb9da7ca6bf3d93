"""The PTX of leaves: rounded to nearest and never fused; leaves without code are left out, and the report says why."""

import json
import re

import pytest

from metafork.comprehensive.emit import write_outputs
from metafork.comprehensive.emit.targets.ptx import TARGET as PTX
from metafork.comprehensive.emit.targets.ptx import Ptx
from metafork.comprehensive.emit.targets.target import NoCodeError
from metafork.comprehensive.leaf_files import LeafTexts
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.tree.left_out import without_kernels
from metafork.comprehensive.tree.schedule_tree import LeafReference, Node
from metafork.ir.messages.source import Source
from metafork.ir.program import Version
from tests.comprehensive.emit.targets.programs import EXAMPLES, Program, build, program
from tests.comprehensive.emit.targets.small_programs import CALLS, FLOATS


def test_floating_point_is_rounded_to_nearest_and_never_fused(driver, tmp_path):
    one = program(FLOATS, "kinds.mf", tmp_path, static={"B": (32,)})
    texts = [path.read_text() for path in (tmp_path / "leaves").glob("*.ptx")]
    assert texts
    for text in texts:
        assert ".target sm_75" in text
        operations = re.findall(
            r"^\s*(?:@\S+ )?((?:add|sub|mul|div|sqrt|fma|mad)\.\S*f(?:32|64))\s", text, re.MULTILINE
        )
        assert {name.split(".")[0] for name in operations} >= {"mul", "div", "sqrt", "fma"}
        assert [name for name in operations if ".rn." not in name or "ftz" in name] == []
        own = len(re.findall(r"\bfma\.", text))
        assert 2 * own == len(re.findall(r"\bsqrt\.", text)) > 0  # the program's own, for each result
    points = [("", {"n": n, "B": B, "f": 0.3, "d": -1.7}) for n, B in ((101, 32), (7, 8), (64, 16))]
    done, said, calls = one.compare(driver, "kinds", points)
    assert said == ["same"] * 3
    assert calls.ran == one.launched(done)
    assert len(calls.ran) == 3
    assert (calls.violations, calls.left) == ([], [])


def test_a_leaf_that_needs_the_device_library_is_left_out(driver, tmp_path):
    one = program(CALLS, "calls.mf", tmp_path)
    roots, waves = one.result.schedules
    assert roots.leaves
    assert waves.leaves == ()
    report = one.result.to_report()
    assert "no code for --backend ptx: no exact PTX without the CUDA device library: expf, sinf" in report
    points = [("", {"n": 40, "B": 8})]
    done, said, calls = one.compare(driver, "roots", points)
    assert (said, len(calls.ran)) == (["same"], 1)
    done, said, calls = one.compare(driver, "waves", points)
    assert (said, calls.ran) == (["same"], [])
    assert "calls_k1: no leaf fits this machine and these parameters; the serial code runs" in done.stderr
    assert "calls_k1_select" in (tmp_path / "calls.h").read_text()


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        ("1", {2: (1, 2), 3: (1, 2)}),
        ("2", {1: (1, 2), 3: (1, 2)}),
        ("1 3", {2: (1, 2)}),
        ("1 2 3", {}),
        ("2_v1", {1: (1, 2), 2: (2,), 3: (1, 2)}),
        ("1 1_v1 2_v1", {2: (2,), 3: (1, 2)}),
    ],
)
def test_a_tree_without_some_kernels(gone, left):
    """The others keep their conditions and are numbered anew, also in the names of their kernels."""
    text = (EXAMPLES / "smooth.mf").read_text()
    options = {"counters": ["shared_memory"], "strategies": ["granularity", "caching"], "static": {"s": (2,)}}
    result = optimize(Source("smooth.mf", text), **options, order="paper")
    whole = result.schedules[0]
    tree = without_kernels(whole, {f"smooth_k0_leaf{name}": "for the test" for name in gone.split()})
    kept = [(whole.leaves[number - 1], places) for number, places in left.items()]
    assert [leaf.systems for leaf in tree.leaves] == [leaf.systems for leaf, _ in kept]
    assert [[one.version for one in leaf.variants] for leaf in tree.leaves] == [
        [leaf.variants[place - 1].version for place in places] for leaf, places in kept
    ]
    for number, leaf in enumerate(tree.leaves, 1):
        names = ["", "_v1"][: len(leaf.variants)]
        assert [(one.number, one.kernel) for one in leaf.variants] == [
            (place, f"smooth_k0_leaf{number}{name}") for place, name in enumerate(reversed(names), 1)
        ]

    def references(part):
        match part:
            case LeafReference(leaf=leaf):
                return [leaf]
            case Node(accept=accept, refuse=refuse):
                return references(accept) + references(refuse)
            case _:
                return []

    assert set(references(tree.root)) == set(range(1, len(kept) + 1))
    json.loads(type(result)(result.unit, (tree,), result.counters, result.strategies).to_json())


class Picky(Ptx, frozen=True):
    """A back end without code for one version."""

    refused: Version | None = None

    def leaf_code(self, variant, analyses):
        if variant.version == self.refused:
            raise NoCodeError("for the test")
        return Ptx.leaf_code(self, variant, analyses)


@pytest.mark.parametrize(
    ("leaf", "variant", "ran", "shared"),
    [
        (1, 2, ["1_v1", "1_v1", "2_v1"], ["B", "B", "none"]),
        (2, 2, ["1_v1", "2_v1", "2_v1"], ["s*B", "none", "none"]),
        (2, 1, ["1_v1", "2", "3_v1"], ["s*B", "B", "none"]),
    ],
)
def test_the_other_kernels_have_their_own_code(driver, tmp_path, leaf, variant, ran, shared):
    text = (EXAMPLES / "smooth.mf").read_text()
    options = {"counters": ["shared_memory"], "strategies": ["granularity", "caching"], "static": {"s": (2,)}}
    result = optimize(Source("smooth.mf", text), **options, order="paper")
    target = Picky(refused=result.schedules[0].leaves[leaf - 1].variants[variant - 1].version)
    texts = LeafTexts(result.analyses, None, target)
    left = texts.in_time(result, None)
    write_outputs(left, tmp_path, code_of=texts.code_of, target=target)
    one = Program(left, tmp_path, build(left, tmp_path))
    points = [(machine, {"n": 402, "s": 2, "B": 16}) for machine in ("", "Z=20", "Z=3")]
    done, said, calls = one.compare(driver, "smooth", points)
    assert said == ["same"] * 3
    assert (calls.violations, calls.left) == ([], [])
    assert calls.ran == [f"smooth_k0_leaf{name}" for name in ran]
    # What was in shared memory still is: codes did not stay with the numbers.
    bytes_of = {"s*B": 4 * (2 * 16 + 2), "B": 4 * (16 + 2), "none": 0}
    traced = [int(number) for number in re.findall(r"shared_bytes=(\d+)", done.stderr)]
    assert traced == [bytes_of[name] for name in shared]


def test_kernels_are_for_the_gpu_that_is_asked_for():
    result = optimize(EXAMPLES / "center.mf", counters=["shared_memory"], order="paper")
    variant = result.schedules[0].leaves[0].own
    assert ".target sm_75" in PTX.leaf_code(variant, None).ptx
    assert ".target sm_90" in PTX.aimed_at("sm_90").leaf_code(variant, None).ptx
