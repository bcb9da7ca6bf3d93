"""What a verification prints about variants: every line about one says what it does."""

import json

from metafork.algebra.prover import Verdict
from metafork.comprehensive.case_discussion.properties import Check
from metafork.comprehensive.verification.result import VariantResult, Verification
from metafork.comprehensive.verification.translation.translation import Validation


def verification():
    rows = [
        VariantResult("f", 1, 1, "f_1", (), points=3),
        VariantResult(
            "f",
            2,
            1,
            "f_2_v1",
            ("granularity", "caching", "register_tile"),
            "s in the grid, a in shared memory",
            "8 results per thread",
            points=3,
            registers={"sm_80": (8, 9)},
        ),
        VariantResult("f", 2, 2, "f_2", ("granularity", "caching"), "s in the grid, a in shared memory", points=3),
        VariantResult("g", 1, 1, "g_1", ("cse1",), "common subexpressions shared"),
    ]
    rows[1].dataflow = Validation(Verdict.YES, "proved for all N")
    return Verification("f.mf", rows)


def test_the_table_ends_with_what_a_variant_does():
    header, *rows = verification().table().splitlines()[:5]
    assert header.endswith("what it does")
    column = header.index("what it does")
    assert [row[column:] for row in rows] == [
        "as written",
        "8 results per thread",
        "s in the grid, a in shared memory",
        "common subexpressions shared",
    ]


def test_lines_about_one_variant_say_what_it_does():
    found = verification()
    unknown = Check(
        "leaf 1 (as written) system 1 and leaf 2 (s in the grid, a in shared memory) system 3 are disjoint",
        Verdict.UNKNOWN,
        "too hard",
    )
    found.guards["f"] = [unknown]
    found.failures += [row.failure("code", "N = 3", "b[0] differs") for row in found.rows[1:3]]
    lines = found.table().splitlines()
    assert "FAIL f leaf 2, variant 1 (8 results per thread): code at N = 3: b[0] differs" in lines
    assert "FAIL f leaf 2 (s in the grid, a in shared memory): code at N = 3: b[0] differs" in lines
    assert "dataflow of f, leaf 2, variant 1 (8 results per thread): proved for all N" in lines
    assert "registers of f_2_v1 (8 results per thread) on sm_80: 9, estimated 8 (-1)" in lines
    assert "not verified: g leaf 1 (common subexpressions shared): it never ran" in lines
    assert f"  unknown: {unknown.name}: too hard" in lines


def test_what_holds_at_samples_is_tested_and_not_proved():
    found = verification()
    checks = [
        Check("a", Verdict.YES, "Z3"),
        Check("b", Verdict.YES, "at 60 regions", sampled=True),
        Check("c", Verdict.UNKNOWN, "at 0 regions", sampled=True),
    ]
    found.guards["f"] = checks
    assert "guards of f: 1 proved, 1 tested, 0 refuted, 1 unknown" in found.table().splitlines()
    assert [one["verdict"] for one in json.loads(found.to_json())["guards"]["f"]] == ["yes", "tested", "unknown"]


def test_a_leaf_is_named_by_the_row_of_its_own_schedule():
    found = verification()
    assert found.leaf_named("f", 1) == "leaf 1 (as written)"
    assert found.leaf_named("g", 1) == "leaf 1 (common subexpressions shared)"
    assert found.leaf_named("g", 12) == "leaf 12"


def test_several_leaves_of_one_line_are_numbers():
    found = verification()
    found.rows[0].dataflow = found.rows[2].dataflow = found.rows[1].dataflow
    assert "dataflow of f, leaves 1, 2 variant 1, 2 variant 2: proved for all N" in found.table().splitlines()


def test_a_failure_is_one_of_its_variant_or_of_the_whole_tree():
    found = verification()
    found.failures.append(found.rows[2].failure("code", "N = 3", "b[0] differs"))
    assert [found.state("code", row) for row in found.rows] == ["ok", "ok", "FAIL", "-"]
    found.refute("f", [Check("leaves 1 and 2 are disjoint", Verdict.NO, "N = 3")])
    assert [found.state("guards", row) for row in found.rows] == ["FAIL", "FAIL", "FAIL", "-"]


def test_refuted_guards_say_what_the_leaves_do_in_their_message():
    found = verification()
    found.refute(
        "f",
        [Check("leaf 2 (s in the grid, a in shared memory) system 1 is consistent", Verdict.NO, "no real solution")],
    )
    (entry,) = json.loads(found.to_json())["failures"]
    assert (
        entry["message"]
        == "leaf 2 (s in the grid, a in shared memory) system 1 is consistent: refuted, no real solution"
    )
    assert entry["leaf"] == 0
    assert "strategies" not in entry
    assert not found.passed


def test_the_json_of_a_failure_holds_the_strategies():
    found = verification()
    found.failures.append(found.rows[3].failure("races", "N = 3", "a data race"))
    (entry,) = json.loads(found.to_json())["failures"]
    assert (entry["leaf"], entry["variant"], entry["strategies"]) == (1, 1, ["cse1"])
