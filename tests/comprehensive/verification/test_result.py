"""What a verification prints about leaves: every line about one names its strategies."""

import json

from comprehensive.case_discussion.properties import Check
from comprehensive.verification.result import Failure, LeafResult, Verification
from comprehensive.verification.translation.translation import Validation
from metafork.algebra.prover import Verdict


def verification():
    rows = [
        LeafResult("f", 1, "f_1", (), points=3),
        LeafResult("f", 2, "f_2", ("granularity", "caching"), points=3, registers={"sm_80": (8, 9)}),
        LeafResult("g", 1, "g_1", ("cse1",)),
    ]
    rows[1].dataflow = Validation(Verdict.YES, "proved for all N")
    return Verification("f.mf", rows)


def test_the_table_ends_with_the_strategies():
    header, *rows = verification().table().splitlines()[:4]
    assert header.split()[-1] == "strategies"
    column = header.index("strategies")
    assert [row[column:] for row in rows] == ["as written", "granularity, caching", "cse1"]


def test_lines_about_one_leaf_name_its_strategies():
    found = verification()
    unknown = Check(
        "leaf 1 (as written) system 1 and leaf 2 (granularity, caching) system 3 are disjoint",
        Verdict.UNKNOWN,
        "too hard",
    )
    found.guards["f"] = [unknown]
    found.failures.append(Failure("code", "f", 2, "N = 3", "b[0] differs", ("granularity", "caching")))
    lines = found.table().splitlines()
    assert "FAIL f leaf 2 (granularity, caching): code at N = 3: b[0] differs" in lines
    assert "dataflow of f, leaf 2 (granularity, caching): proved for all N" in lines
    assert "registers of f_2 (granularity, caching) on sm_80: 9, estimated 8 (-1)" in lines
    assert (
        "  unknown: leaf 1 (as written) system 1 and leaf 2 (granularity, caching) system 3 are disjoint: too hard"
        in lines
    )


def test_a_leaf_is_named_with_the_strategies_of_its_own_schedule():
    found = verification()
    assert found.leaf_named("f", 1) == "leaf 1 (as written)"
    assert found.leaf_named("g", 1) == "leaf 1 (cse1)"
    assert found.leaf_named("g", 12) == "leaf 12"


def test_several_leaves_of_one_line_are_numbers():
    found = verification()
    found.leaves[0].dataflow = found.leaves[1].dataflow
    assert "dataflow of f, leaves 1, 2: proved for all N" in found.table().splitlines()


def test_refuted_guards_name_the_strategies_of_the_leaves_in_their_message():
    found = verification()
    found.refute("f", [Check("leaf 2 (granularity, caching) system 1 is consistent", Verdict.NO, "no real solution")])
    (entry,) = json.loads(found.to_json())["failures"]
    assert entry["message"] == "leaf 2 (granularity, caching) system 1 is consistent: refuted, no real solution"
    assert entry["leaf"] == 0
    assert "strategies" not in entry
    assert not found.passed


def test_the_json_of_a_failure_holds_the_strategies():
    found = verification()
    found.failures.append(Failure("races", "g", 1, "N = 3", "a data race", ("cse1",)))
    (entry,) = json.loads(found.to_json())["failures"]
    assert entry["strategies"] == ["cse1"]
