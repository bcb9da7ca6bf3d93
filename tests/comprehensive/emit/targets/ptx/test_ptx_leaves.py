"""The PTX of leaves: rounded to nearest and never fused; leaves without code are left out, and the report says why."""

import json
import re

import pytest

from comprehensive.emit import write_outputs
from comprehensive.emit.targets.ptx import TARGET as PTX
from comprehensive.emit.targets.ptx import Ptx
from comprehensive.emit.targets.target import NoCodeError
from comprehensive.leaf_files import LeafTexts
from comprehensive.optimize import optimize
from comprehensive.tree.left_out import without_leaves
from comprehensive.tree.schedule_tree import LeafReference, Node
from metafork.ir.messages.source import Source
from tests.comprehensive.emit.targets.programs import EXAMPLES, Program, build, launched, program
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
        assert len(re.findall(r"\bfma\.", text)) == 1  # the program's own
    points = [("", {"n": n, "B": B, "f": 0.3, "d": -1.7}) for n, B in ((101, 32), (7, 8), (64, 16))]
    done, said, calls = one.compare(driver, "kinds", points)
    assert said == ["same"] * 3
    assert calls.ran == launched(done)
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


@pytest.mark.parametrize("gone", [(1,), (2,), (3,), (1, 3), (1, 2, 3)])
def test_a_tree_without_some_leaves(gone):
    """The others keep their conditions and are numbered anew, also in the names of their kernels."""
    text = (EXAMPLES / "smooth.mf").read_text()
    options = {"counters": ["shared_memory"], "strategies": ["granularity", "caching"], "static": {"s": (2,)}}
    result = optimize(Source("smooth.mf", text), **options, order="paper")
    whole = result.schedules[0]
    tree = without_leaves(whole, dict.fromkeys(gone, "for the test"))
    kept = [leaf for leaf in whole.leaves if leaf.id not in gone]
    assert [(leaf.systems, leaf.effects) for leaf in tree.leaves] == [(leaf.systems, leaf.effects) for leaf in kept]
    names = [one.kernel for leaf in tree.leaves for one in (leaf, *leaf.instances)]
    expected = [
        name
        for number, leaf in enumerate(kept, 1)
        for name in [f"smooth_k0_leaf{number}", *(f"smooth_k0_leaf{number}_instance{i.number}" for i in leaf.instances)]
    ]
    assert names == expected

    def references(part):
        match part:
            case LeafReference(leaf=leaf):
                return [leaf]
            case Node(accept=accept, refuse=refuse):
                return references(accept) + references(refuse)
            case _:
                return []

    assert set(references(tree.root)) == set(range(1, len(kept) + 1))
    left = type(result)(result.unit, (tree,), result.counters, result.strategies)
    json.loads(left.to_json())


class Picky(Ptx, frozen=True):
    """A back end without code for the leaves of some titles."""

    refused: tuple[str, ...] = ()

    def leaf_code(self, leaf, analyses):
        if leaf.title in self.refused:
            raise NoCodeError("for the test")
        return Ptx.leaf_code(self, leaf, analyses)


@pytest.mark.parametrize("gone", [(1,), (2,)])
def test_the_other_leaves_have_their_own_code(driver, tmp_path, gone):
    text = (EXAMPLES / "smooth.mf").read_text()
    options = {"counters": ["shared_memory"], "strategies": ["granularity", "caching"], "static": {"s": (2,)}}
    result = optimize(Source("smooth.mf", text), **options, order="paper")
    titles = {leaf.id: leaf.title for leaf in result.schedules[0].leaves}
    target = Picky(refused=tuple(titles[number] for number in gone))
    texts = LeafTexts(result.analyses, None, target)
    left = texts.in_time(result, None)
    (tree,) = left.schedules
    assert [leaf.title for leaf in tree.leaves] == [title for number, title in titles.items() if number not in gone]
    write_outputs(left, tmp_path, code_of=texts.code_of, target=target)
    one = Program(left, tmp_path, build(left, tmp_path))
    points = [(machine, {"n": 402, "s": 2, "B": 16}) for machine in ("", "Z=20", "Z=3")]
    done, said, calls = one.compare(driver, "smooth", points)
    assert said == ["same"] * 3
    assert (calls.violations, calls.left) == ([], [])
    # What was in shared memory still is: codes did not stay with the numbers.
    bytes_of = {"s*B": 4 * (2 * 16 + 2), "B": 4 * (16 + 2), "none": 0}
    shared = [int(number) for number in re.findall(r"shared_bytes=(\d+)", done.stderr)]
    expected = {(1,): ["B", "B", "none"], (2,): ["s*B", "none", "none"]}[gone]
    assert shared == [bytes_of[name] for name in expected]


def test_kernels_are_for_the_gpu_that_is_asked_for():
    result = optimize(EXAMPLES / "center.mf", counters=["shared_memory"], order="paper")
    leaf = result.schedules[0].leaves[0]
    assert ".target sm_75" in PTX.leaf_code(leaf, None).ptx
    assert ".target sm_90" in PTX.aimed_at("sm_90").leaf_code(leaf, None).ptx
