"""The order of leaves: by cost on programs, and on made-up versions that the algorithms know nothing of."""

from dataclasses import dataclass

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import metafork
from metafork.algebra.prover import Verdict
from metafork.comprehensive.case_discussion.discussion import Discussion
from metafork.comprehensive.case_discussion.properties import (
    Judge,
    Subject,
    consistent,
    covers_start,
    disjoint,
    height_bound,
)
from metafork.comprehensive.case_discussion.quintuple import Precedence
from metafork.comprehensive.cli import cli
from metafork.comprehensive.tree.schedule_tree import ORDER
from metafork.comprehensive.tree.selection import select
from metafork.runtime.machine import PRESETS
from tests.comprehensive.case_discussion.made_up import MadeCounter, MadeStrategy, jacobi, start
from tests.comprehensive.case_discussion.random_problems import LIMITS, problems


@dataclass(frozen=True)
class Chosen(MadeStrategy):
    by_choice: bool = True


@dataclass(frozen=True)
class First:
    """Puts versions with one of these strategies first."""

    names: frozenset[str]

    def precedence(self, version, others):
        return Precedence(any(name in version for name in self.names), "made up")


def assert_sound(outcome, begin, strategies):
    subject = Subject.of_outcome(outcome, begin)
    judge = Judge(subject)
    checks = consistent(subject, judge) + disjoint(subject, judge) + covers_start(subject, judge)
    checks.append(height_bound(outcome.root, len(strategies), len(outcome.counters), ordered=True))
    for check in checks:
        assert check.verdict is Verdict.YES, check


def test_versions_with_what_leaves_have_are_compared_once():
    counters, strategies = jacobi()
    registers = MadeCounter("registers_per_thread", "R", lambda version: 8 if "cse1" in version else 9)
    strategies[-1] = Chosen("caching", frozenset({"shared_memory"}))
    # Caching goes first where cse1 is there; without it, it was found not to.
    outcome = Discussion(start(), [registers, counters[1]], strategies, order=First(frozenset({"cse1"}))).run(())
    assert [case.strategies for case in outcome.cases] == [
        ("cse1", "cse2"),
        ("granularity", "cse1", "cse2"),
        ("granularity", "caching", "cse1", "cse2"),
        ("cse1", "granularity", "caching", "cse2"),
    ]


def test_what_goes_first_has_all_points_where_it_is_accepted_and_the_others_stay_behind_it():
    counters, strategies = jacobi()
    registers = MadeCounter("registers_per_thread", "R", lambda version: 12 if version == ("caching",) else 9)
    strategies[-1] = Chosen("caching", frozenset({"shared_memory"}))
    begin = start()
    outcome = Discussion(begin, [registers, counters[1]], strategies, order=First(frozenset({"caching"}))).run(())
    assert outcome.cases[0].strategies[0] == "caching"
    assert [[c.text(begin.order) for c in system] for system in outcome.cases[0].systems] == [["12 <= R"]]
    # Where it takes too many registers, the leaves of the paper's Figure 7 are as they were.
    behind = [[c.text(begin.order) for c in case.systems[0]] for case in outcome.cases[1:]]
    assert behind == [
        ["9 <= R", "2*s*B + 2 <= Z", "R < 12"],
        ["9 <= R", "2*B + 2 <= Z", "R < 12", "Z < 2*s*B + 2"],
        ["9 <= R", "R < 12", "Z < 2*B + 2"],
    ]
    assert_sound(outcome, begin, strategies)


def test_what_is_not_decided_stays_as_it_was():
    counters, strategies = jacobi()
    begin = start()
    strategies[-1] = Chosen("caching", frozenset({"shared_memory"}))
    asked = Discussion(begin, counters, strategies, order=First(frozenset())).run(())
    plain = Discussion(begin, counters, strategies).run(())
    assert (asked.root, [case.systems for case in asked.cases]) == (plain.root, [case.systems for case in plain.cases])
    assert {subject for subject, _ in asked.notes} - {subject for subject, _ in plain.notes} == {ORDER}


@settings(max_examples=25, deadline=None, derandomize=True)
@given(problems(), st.sets(st.sampled_from(["O0", "O1", "O2"]), min_size=1))
def test_every_property_is_proved_with_an_order(problem, names):
    counters, strategies = problem
    targets = tuple(c.symbol for c in counters if c.kind == "performance")
    ratios = tuple(c.symbol for c in counters if c.kind == "performance" and not c.less_is_better)
    begin = start(machine=LIMITS, targets=targets, ratios=ratios)
    chosen = [Chosen(one.name, one.improves) if one.name in names else one for one in strategies]
    outcome = Discussion(begin, counters, chosen, order=First(frozenset(names))).run(())
    assert_sound(outcome, begin, chosen)
    plain = Discussion(begin, counters, strategies).run(())
    # No point loses its leaf: wherever the algorithm alone has one, this tree has one too.
    judge = Judge(Subject.of_outcome(outcome, begin))
    kept = [system for case in outcome.cases for system in case.systems]
    for case in plain.cases:
        for system in case.systems:
            assert judge.empty(system, *kept).verdict is Verdict.YES


PLAIN = ["scalar_replacement", "unroll_and_jam", "granularity", "caching"]
NEVER_CACHED = """
void copy(int n, int B0, int B1, const float a[n][n], float c[n][n]) {
  int dim0 = n / B0, dim1 = n / B1;
  meta_schedule {
    meta_for (int i = 0; i < dim0; i++) meta_for (int j = 0; j < dim1; j++)
      meta_for (int u = 0; u < B0; u++) meta_for (int v = 0; v < B1; v++)
        c[i * B0 + u][j * B1 + v] = a[i * B0 + u][j * B1 + v];
  }
}
"""


@pytest.mark.parametrize(
    ("source", "schedule", "values", "by_cost", "by_paper"),
    [
        ("transpose", 0, "N=512 s=4 B0=8 B1=32", "no shared memory", "a, c in shared memory"),
        ("transpose", 1, "N=512 s=4 B0=8 B1=32", "a, c in shared memory", "a, c in shared memory"),
        ("jacobi2d", 0, "rows=514 columns=514 B0=8 B1=32", "no shared memory", "a in shared memory"),
        ("jacobi1d", 0, "T=9 t=1 N=262146 s=4 B=256", "no shared memory", "a in shared memory"),
        ("smooth", 0, "n=262146 s=4 B=256", "no shared memory", "x in shared memory"),
        ("matadd", 0, "N=512 B0=8 B1=32", "as written", "as written"),
        ("matmul", 0, "n=192 B0=16 ub1=16 s=4", "unroll-and-jam", "a, b in shared memory"),
        ("matmul_tile", 0, "n=192 B=16 K=16 s0=4 s1=4", "a, b in shared memory", "a, b in shared memory"),
        ("matvec", 0, "m=512 n=512 B=64", "A, x in shared memory", "A, x in shared memory"),
        (NEVER_CACHED, 0, "n=512 B0=8 B1=32", "as written", "as written"),
    ],
)
def test_the_leaf_that_an_sm_80_takes(source, schedule, values, by_cost, by_paper):
    path = source if "\n" in source else f"examples/{source}.mf"
    numbers = {name: int(number) for name, number in (word.split("=") for word in values.split())}
    for order, expected in (("cost", by_cost), ("paper", by_paper)):
        result = metafork.optimize(path, order=order, counters=["threads_per_block", "shared_memory"], strategies=PLAIN)
        tree = result.document.schedules[schedule]
        machine = {symbol: PRESETS["sm_80"].fields()[field] for symbol, field in tree.fields.items()}
        chosen = select(tree, {name: numbers.get(name, 1) for name in (*tree.data, *tree.program)} | machine)
        assert chosen.leaf == 1
        assert expected in tree.leaves[0].title
        assert ("no shared memory" in tree.leaves[0].title) == ("no shared memory" in expected)


def test_report_and_explain_say_in_symbols_why_a_leaf_goes_first():
    result = metafork.optimize("examples/transpose.mf")
    report = result.to_report()
    before, after = report.split("## transpose_k1:")
    assert "2*s*B0*B1 < 6*s*B0*B1 + 3*B0*B1" in before.split("### Leaves, in order of preference")[1]
    assert "`2*s*B0*B1 <= 2*s*B0*B1`" in before
    assert "that it asks for no more sectors is not proved, in elements per block: `9*s*B0*B1 <= 2*s*B0*B1`" in after
    told = CliRunner().invoke(cli, ["explain", "examples/transpose.mf"])
    copied, transposed = told.output.split("transpose_k1:")
    assert told.exit_code == 0
    assert "a does not go through shared memory" in copied
    assert "2*s*B0*B1 < 6*s*B0*B1 + 3*B0*B1" in copied
    assert "c goes through shared memory" in transposed
    assert "a does not go through shared memory" in transposed
    # Versions are compared as they are at leaves, without what only variants have.
    assert "x does not go through shared memory" in CliRunner().invoke(cli, ["explain", "examples/smooth.mf"]).output
    paper = CliRunner().invoke(cli, ["explain", "--order", "paper", "examples/transpose.mf"])
    assert "does not go through shared memory" not in paper.output


def test_the_order_is_one_of_two():
    told = CliRunner().invoke(cli, ["optimize", "--order", "speed", "examples/matadd.mf"])
    assert told.exit_code == 2
    assert "'speed' is not one of 'cost', 'paper'" in told.output


class Endless:
    def precedence(self, version, others):
        while True:
            pass


def test_a_comparison_without_end_is_given_up():
    counters, strategies = jacobi()
    strategies[-1] = Chosen("caching", frozenset({"shared_memory"}))
    outcome = Discussion(start(), counters, strategies, time_limit=0.5, order=Endless()).run(())
    assert not outcome.complete
    assert (
        ORDER,
        "the input with caching does not go before the input: the time limit was reached before it was done",
    ) in (outcome.notes)


def test_a_program_without_anything_to_choose_says_nothing_of_it():
    result = metafork.optimize(NEVER_CACHED, counters=["shared_memory"], strategies=["caching"])
    assert not {ORDER, "caching"} & {subject for subject, _ in result.schedules[0].notes}
