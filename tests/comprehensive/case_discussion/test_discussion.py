import itertools
from dataclasses import dataclass
from fractions import Fraction

import pytest

from metafork.algebra.polynomial import ONE, Polynomial, at_most, less_than
from metafork.algebra.prover import Verdict
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.analyses import Analyses
from metafork.comprehensive.case_discussion.discussion import Discussion
from metafork.comprehensive.case_discussion.properties import (
    Judge,
    Subject,
    commuting,
    consistent,
    covers_start,
    disjoint,
    height,
    height_bound,
    idempotence,
    optimality,
)
from metafork.comprehensive.case_discussion.quintuple import Precedence
from metafork.comprehensive.systems.systems import Systems
from metafork.comprehensive.tree.schedule_tree import Inconsistent, LeafReference, Node, NoLeaf
from metafork.evaluators.counter import CounterValue, NotKnown
from metafork.strategies.strategy import Need
from tests.comprehensive.case_discussion.made_up import MadeCounter, MadeStrategy, Result, jacobi, start, symbol

S, B, N, Z, R = (symbol(name) for name in ("s", "B", "N", "Z", "R"))


def texts(outcome, from_start):
    return [[[c.text(from_start.order) for c in system] for system in case.systems] for case in outcome.cases]


def assert_sound(outcome, from_start, strategies):
    subject = Subject.of_outcome(outcome, from_start)
    judge = Judge(subject)
    checks = consistent(subject, judge) + disjoint(subject, judge) + covers_start(subject, judge)
    checks.append(height_bound(outcome.root, len(strategies), len(outcome.counters)))
    for check in checks:
        assert check.verdict is Verdict.YES, check
    for case in outcome.cases:
        assert case.witness is not None
        for constraint in (*from_start.constraints, *case.paths[0]):
            assert constraint.holds(case.witness)


def test_jacobi_has_the_systems_of_figure_7():
    counters, strategies = jacobi()
    begin = start()
    outcome = Discussion(begin, counters, strategies).run(())
    assert texts(outcome, begin) == [
        [["9 <= R", "2*s*B + 2 <= Z"]],
        [["9 <= R", "2*B + 2 <= Z", "Z < 2*s*B + 2"]],
        [["9 <= R", "Z < 2*B + 2"]],
    ]
    assert [case.strategies for case in outcome.cases] == [
        ("cse1", "cse2"),
        ("granularity", "cse1", "cse2"),
        ("granularity", "caching", "cse1", "cse2"),
    ]
    assert_sound(outcome, begin, strategies)
    assert len(outcome.cases) == 3
    [region] = [end for _, end in Subject.of_outcome(outcome, begin).ends() if isinstance(end, NoLeaf) and end.system]
    assert [c.text() for c in region.system] == ["R < 9"]
    assert "registers_per_thread: 9 <= R does not hold; applied: cse1, cse2, granularity" in region.reason


def test_jacobi_tree_without_registers_is_the_example_of_the_design():
    counters, strategies = jacobi()
    outcome = Discussion(start(), counters[1:], strategies).run(())
    root = outcome.root
    assert isinstance(root, Node)
    assert root.condition == at_most(2 * S * B + 2, Z)
    assert (root.accept, root.strategy) == (LeafReference(1), "granularity")
    assert root.refuse.condition == at_most(2 * B + 2, Z)
    assert (root.refuse.accept, root.refuse.strategy) == (LeafReference(2), "caching")
    last = root.refuse.refuse
    assert last.condition == at_most(0, Z)
    assert (last.accept, last.strategy, last.refuse) == (LeafReference(3), None, Inconsistent())
    assert outcome.statistics.solver_calls == 0


def transposition():
    """Figure 8: granularity takes the registers from 6 to 5, and the shared memory from 2*s*B0*B1 to 2*B0*B1."""
    b0, b1 = symbol("B0"), symbol("B1")

    def words(version):
        if "caching" in version:
            return 0
        return 2 * b0 * b1 if "granularity" in version else 2 * S * b0 * b1

    counters = [
        MadeCounter("registers_per_thread", "R", lambda version: 5 if "granularity" in version else 6),
        MadeCounter("shared_memory", "Z", words),
    ]
    return counters, jacobi()[1]


def test_transposition_has_no_gap_where_figure_8_has_one():
    counters, strategies = transposition()
    begin = start(program=("s", "B0", "B1"))
    outcome = Discussion(begin, counters, strategies).run(())
    assert_sound(outcome, begin, strategies)
    found = texts(outcome, begin)
    assert found[0] == [["6 <= R", "2*s*B0*B1 <= Z"]]
    reduced = [["6 <= R", "2*B0*B1 <= Z", "Z < 2*s*B0*B1"], ["5 <= R", "2*B0*B1 <= Z", "R < 6"]]
    assert sorted(system for systems in found for system in systems if "2*B0*B1 <= Z" in system) == sorted(reduced)
    # R = 5 with Z >= 2*s*B0*B1 is in no system of the figure.
    gap = {"R": 5, "Z": 8, "s": 2, "B0": 1, "B1": 2, "N": 1}
    holding = [
        number
        for number, case in enumerate(outcome.cases, 1)
        for system in case.systems
        if all(constraint.holds(gap) for constraint in system)
    ]
    assert len(holding) == 1


def test_all_counters_are_accepted_on_the_version_of_the_leaf():
    # With gamma put back in the order of the paper's remark 2 (r2 before r1), r2 would be accepted on the version that
    # O1 made and never looked at again after O2, which makes it worse.
    counters = [
        MadeCounter("r1", "R", lambda version: 1 if "O2" in version else 2),
        MadeCounter("r2", "Z", lambda version: {(): 5, ("O1",): 3, ("O1", "O2"): 7}.get(version, 5)),
    ]
    strategies = [MadeStrategy("O1", frozenset({"r2"})), MadeStrategy("O2", frozenset({"r1"}))]
    begin = start(program=(), data=())
    outcome = Discussion(begin, counters, strategies).run(())
    assert_sound(outcome, begin, strategies)
    for case in outcome.cases:
        for counter in counters:
            value = counter.evaluate(case.version, Analyses()).numerator
            accepted = at_most(value, symbol(counter.symbol))
            assert Discussion(begin, counters, strategies).systems.implies(case.paths[0], accepted) is Verdict.YES


def test_height_exceeds_the_printed_lemma_and_meets_the_corrected_one():
    # One counter, one strategy: w(s + t) = 1, yet two conditions stand on the path.
    counters = [MadeCounter("r1", "R", lambda version: 1 if version else 2)]
    strategies = [MadeStrategy("O1", frozenset({"r1"}))]
    outcome = Discussion(start(), counters, strategies).run(())
    assert height(outcome.root) == 2
    assert height_bound(outcome.root, 1, 1).verdict is Verdict.YES


def test_a_ratio_is_accepted_when_the_target_is_met():
    # warps/limit grows from B/4 to B/2 with the strategy; the target is a rational number in [0, 1].
    def ratio(version):
        return CounterValue(B, Polynomial.constant(2) if version else Polynomial.constant(4), domain=(at_most(0, B),))

    counters = [
        MadeCounter("registers", "R", lambda version: 3 if version else 2),
        MadeCounter("occupancy", "P", ratio, "performance", False, Fraction(1, 2)),
    ]
    strategies = [MadeStrategy("more", frozenset({"occupancy"}))]
    begin = start(program=("B",), data=(), machine=("R",), targets=("P",), ratios=("P",))
    outcome = Discussion(begin, counters, strategies).run(())
    assert_sound(outcome, begin, strategies)
    root = outcome.root
    assert root.condition == at_most(2, R)
    assert root.accept.condition == at_most(4 * symbol("P"), B)
    assert root.accept.strategy == "more"
    # After the refusal of p1, r1 comes again before p1.
    assert [root.accept.refuse.counter, root.accept.refuse.accept.counter] == ["registers", "occupancy"]
    assert texts(outcome, begin)[1] == [["3 <= R", "2*P <= B", "B < 4*P"]]


def test_a_rational_function_of_machine_parameters():
    # blocks*B*R <= K: a cost that is Z/(B*B) of the machine, better when less.
    counters = [
        MadeCounter("cost", "C", lambda version: CounterValue(symbol("$Z"), B * B), "performance"),
        MadeCounter("shared_memory", "Z", lambda version: S),
    ]
    begin = start(machine=("Z",), targets=("C",))
    outcome = Discussion(begin, counters, []).run(())
    assert [counter.name for counter in outcome.counters] == ["shared_memory", "cost"]
    assert texts(outcome, begin) == [[["s <= Z", "Z <= B*B*C"]]]
    assert_sound(outcome, begin, [])


def test_a_fresh_symbol_joins_the_systems_and_is_renamed_where_it_clashes():
    half = DerivedSymbol("B", "ceiling", (N, Polynomial.constant(2)))
    of_no_use = DerivedSymbol("third", "floor", (N - 9, Polynomial.constant(3)))  # N - 9 may be negative
    value = CounterValue(symbol("B") * 2, derived=(half, of_no_use))
    counters = [MadeCounter("shared_memory", "Z", lambda version: value)]
    begin = start()
    outcome = Discussion(begin, counters, []).run(())
    assert [(symbol_.name, symbol_.definition()) for symbol_ in outcome.derived] == [("ceil1", "ceil(N/2)")]
    assert texts(outcome, begin) == [[["2*ceil1 <= Z"]]]
    assert outcome.cases[0].witness["Z"] == 2 * outcome.cases[0].witness["ceil1"]
    assert_sound(outcome, begin, [])


def test_a_quotient_that_may_divide_by_zero_is_left_out():
    quotient = DerivedSymbol("q", "floor", (Polynomial.constant(8), N))
    counters = [
        MadeCounter("bad", "Z", lambda version: CounterValue(symbol("q"), derived=(quotient,))),
        MadeCounter("good", "R", lambda version: 4),
    ]
    outcome = Discussion(start(), counters, []).run(())
    assert [counter.name for counter in outcome.counters] == ["good"]
    [(subject, sentence)] = outcome.notes
    assert subject == "bad"
    assert "defined only where 1 <= N" in sentence


def test_a_value_outside_its_domain_is_left_out_and_a_strategy_that_leads_there_is_skipped():
    def words(version):
        return CounterValue(B, domain=(at_most(B, S),)) if "lossy" in version else CounterValue(B + 1)

    strategies = [MadeStrategy("lossy", frozenset({"shared_memory"}))]
    outcome = Discussion(start(), [MadeCounter("shared_memory", "Z", words)], strategies).run(())
    assert outcome.root.strategy is None
    assert "lossy (shared_memory is not known afterwards" in outcome.root.refuse.reason
    # The same domain is no obstacle where the start system implies it.
    bounded = Discussion(start(more=(at_most(B, S),)), [MadeCounter("shared_memory", "Z", words)], strategies).run(())
    assert bounded.root.strategy == "lossy"
    out = Discussion(start(), [MadeCounter("words", "Z", lambda v: CounterValue(B, domain=(at_most(B, S),)))], []).run(
        ()
    )
    assert out.root == LeafReference(1)
    assert out.notes[0][1].startswith("left out: its value holds where B <= s")


def test_a_counter_that_is_not_known_is_left_out_with_its_reason():
    counters = [MadeCounter("fog", "R", lambda version: NotKnown("too foggy")), *jacobi()[0][1:]]
    outcome = Discussion(start(), counters, jacobi()[1]).run(())
    assert ("fog", "left out: too foggy") in outcome.notes
    assert len(outcome.cases) == 3


def test_a_strategy_that_does_not_apply_makes_way_for_the_next():
    counters, strategies = jacobi()
    strategies[2] = MadeStrategy("granularity", strategies[2].improves, refuses=lambda version: "no such loop")
    outcome = Discussion(start(), counters[1:], strategies).run(())
    assert outcome.root.strategy == "caching"
    assert ("granularity", "not applied to the input: no such loop") in outcome.notes
    assert len(outcome.cases) == 2


def test_a_strategy_at_the_leaf_is_left_out_where_a_counter_gets_worse():
    counters = [MadeCounter("registers_per_thread", "R", lambda version: 12 if "worse" in version else 9)]
    strategies = [
        MadeStrategy("better", frozenset({"other"}), at_leaf=True),
        MadeStrategy("worse", frozenset({"other"}), at_leaf=True),
    ]
    outcome = Discussion(start(), counters, strategies).run(())
    assert outcome.cases[0].strategies == ("better",)
    assert any(subject == "worse" and "a counter may get worse" in sentence for subject, sentence in outcome.notes)


class AsTheyAre:
    """The order by cost, by which nothing goes first: leaves have variants then."""

    def precedence(self, version, others):
        return Precedence(False, "made up")


def discussed(begin, counters, strategies):
    """The outcome of a discussion whose leaves have variants, and each variant's strategies and limits, by leaf."""
    outcome = Discussion(begin, counters, strategies, order=AsTheyAre()).run(())
    assert_sound(outcome, begin, strategies)
    for case in outcome.cases:
        assert all(one.limits for one in case.proposals)
    found = [
        [(one.strategies, [c.text(begin.order) for c in one.limits]) for one in case.proposals]
        for case in outcome.cases
    ]
    return outcome, found


def dearer(**fixed):
    def registers(version):
        return 9 + 3 * ("dear" in version) + 2 * ("tile" in version)

    counters = [
        MadeCounter("registers_per_thread", "R", registers),
        MadeCounter(
            "shared_memory",
            "Z",
            lambda version: (S * B if "smaller" in version else 2 * S * B) + 4 * registers(version),
        ),
    ]
    strategies = [
        MadeStrategy("free", frozenset({"other"}), at_leaf=True),
        MadeStrategy("dear", frozenset({"other"}), at_leaf=True),
        MadeStrategy("tile", frozenset({"other"}), proposes=True),
        MadeStrategy("smaller", frozenset({"shared_memory"})),
    ]
    begin = start(fixed=fixed)
    outcome, variants = discussed(begin, counters, strategies)
    return outcome, texts(outcome, begin), variants


def test_what_a_strategy_worsens_limits_its_variant_and_nothing_else():
    outcome, systems, variants = dearer()
    assert [case.strategies for case in outcome.cases] == [("free",), ("smaller", "free")]
    assert systems[0] == [["9 <= R", "2*s*B + 36 <= Z"]]
    assert variants == [
        [(("free", "dear", "tile"), ["14 <= R", "2*s*B + 56 <= Z"])],
        [(("smaller", "free", "dear", "tile"), ["14 <= R", "s*B + 56 <= Z"])],
    ]
    (variant,) = outcome.cases[0].proposals
    assert [one.counters["registers_per_thread"].numerator for one in (variant, outcome.cases[0])] == [14, 9]


def test_a_fixed_machine_decides_limits():
    rich, _, variants = dearer(R=63, Z=10**9)
    assert rich.cases[0].strategies == ("free",)
    assert variants[0] == [(("free", "dear", "tile"), ["2*s*B + 56 <= 1000000000"])]
    _, _, variants = dearer(R=63)
    assert variants[0] == [(("free", "dear", "tile"), ["2*s*B + 56 <= Z"])]
    poor, _, variants = dearer(R=10)
    assert [case.strategies for case in poor.cases] == [("free",), ("smaller", "free")]
    assert variants == [[], []]


def test_a_variant_without_limits_takes_the_place_of_its_leaf():
    counters = [MadeCounter("registers_per_thread", "R", lambda version: 9 + len(version))]
    strategies = [MadeStrategy("tile", frozenset(), proposes=True)]
    outcome, variants = discussed(start(machine=("R",), fixed={"R": 63}), counters, strategies)
    assert [case.strategies for case in outcome.cases] == [("tile",)]
    assert variants == [[]]


def test_a_limit_that_one_path_implies_makes_no_leaf_of_its_own():
    """Both refusals lead to the same version; what it proposes has a limit on one of the two paths."""

    def registers(version):
        return 10 if not version else 9 if "tile" in version else 1

    counters = [
        MadeCounter("registers", "R", registers),
        MadeCounter("shared_memory", "Z", lambda version: 1 if version else 10),
    ]
    strategies = [
        MadeStrategy("smaller", frozenset({"registers", "shared_memory"})),
        MadeStrategy("tile", frozenset(), proposes=True, refuses=lambda version: None if version else "too large"),
    ]
    begin = start()
    outcome, variants = discussed(begin, counters, strategies)
    assert [case.strategies for case in outcome.cases] == [(), ("smaller",)]
    assert texts(outcome, begin)[1] == [["10 <= R", "1 <= Z", "Z < 10"], ["1 <= R", "1 <= Z", "R < 10"]]
    assert variants == [[], [(("smaller", "tile"), ["9 <= R"])]]


def test_the_order_of_the_paper_has_no_variants():
    counters = [MadeCounter("registers_per_thread", "R", lambda version: 9 + len(version))]
    strategies = [MadeStrategy("tile", frozenset(), proposes=True)]
    (case,) = Discussion(start(machine=("R",)), counters, strategies).run(()).cases
    assert (case.strategies, case.proposals) == ((), ())


def test_what_is_needed_is_a_limit_and_the_next_variant_does_without():
    threads = MadeCounter("threads_per_block", "T", lambda version: B if "several" in version else S * B)
    counters = [threads, MadeCounter("registers_per_thread", "R", lambda version: 9 + 3 * len(version))]
    needs = (Need(threads, "warp_size"),)
    strategies = [
        MadeStrategy("several", frozenset(), proposes=True, needs=needs),
        MadeStrategy("tile", frozenset(), proposes=True),
    ]
    outcome, variants = discussed(start(machine=("T", "R")), counters, strategies)
    assert [case.strategies for case in outcome.cases] == [()]
    assert variants == [[(("several", "tile"), ["32 <= B", "15 <= R"]), (("tile",), ["12 <= R"])]]


def with_a_need_of_its_own(share):
    """The variants where a strategy needs what no counter that takes part says, and a smaller one comes behind it."""

    def taken(version):
        return "taken" if {"tall", "short"} & {*version} else None

    counters = [MadeCounter("registers_per_thread", "R", lambda version: 40 if "tall" in version else 9 + len(version))]
    needs = (Need(MadeCounter("share", "W", share), 1),)
    strategies = [
        MadeStrategy("tall", frozenset(), proposes=True, needs=needs, refuses=taken),
        MadeStrategy("short", frozenset(), proposes=True, refuses=taken),
    ]
    _, (variants,) = discussed(start(machine=("R",)), counters, strategies)
    return variants


def test_a_strategy_may_need_what_no_counter_says():
    variants = with_a_need_of_its_own(lambda version: CounterValue(B, Polynomial.constant(16)))
    assert variants == [(("tall",), ["16 <= B", "40 <= R"]), (("short",), ["10 <= R"])]


@pytest.mark.parametrize("share", [NotKnown("nobody knows"), CounterValue(B, domain=(at_most(B, 8),))])
def test_what_is_needed_and_not_known_is_not_there(share):
    assert with_a_need_of_its_own(lambda version: share) == [(("short",), ["10 <= R"])]


def test_leaves_have_few_variants():
    """Those that need more registers than one before them never run, and are left out."""

    def registers(version):
        return 9 + sum(2 ** int(name[1:]) for name in version)

    counters = [MadeCounter("registers_per_thread", "R", registers)]
    many = MadeCounter("many", "W", lambda version: B)
    strategies = [MadeStrategy(f"O{i}", frozenset(), proposes=True, needs=(Need(many, 9),)) for i in range(5)]
    _, (variants,) = discussed(start(machine=("R",)), counters, strategies)
    assert [names for names, _ in variants] == [
        ("O0", "O1", "O2", "O3", "O4"),
        ("O0", "O1", "O2", "O3"),
        ("O0", "O1", "O2"),
        ("O0", "O1"),
    ]


def test_equal_versions_are_one_leaf_and_their_systems_are_joined_where_possible():
    # The strategy applied on a refusal and the one applied at the leaf make the same version.
    counters = [MadeCounter("registers_per_thread", "R", lambda version: 7 if version else 9)]
    strategies = [MadeStrategy("cse", frozenset({"registers_per_thread"}), at_leaf=True)]
    begin = start()
    outcome = Discussion(begin, counters, strategies).run(())
    assert texts(outcome, begin) == [[["7 <= R"]]]
    assert len(outcome.cases[0].paths) == 2
    assert outcome.root.accept == outcome.root.refuse.accept == LeafReference(1)
    assert_sound(outcome, begin, strategies)


def test_a_fixed_machine_prunes_the_tree():
    counters, strategies = jacobi()
    outcome = Discussion(start(fixed={"R": 63}), counters, strategies).run(())
    assert outcome.root.condition == at_most(2 * S * B + 2, Z)
    assert len(outcome.cases) == 3
    starved = Discussion(start(fixed={"R": 8}), counters, strategies).run(())
    assert starved.cases == ()
    assert isinstance(starved.root, NoLeaf)
    both = start(fixed={"R": 63, "Z": 12})
    outcome = Discussion(both, counters, strategies).run(())
    assert texts(outcome, both) == [[["2*s*B + 2 <= 12"]], [["2*B + 2 <= 12", "12 < 2*s*B + 2"]], [["12 < 2*B + 2"]]]
    assert_sound(outcome, both, strategies)


def test_a_start_without_a_solution_gives_no_leaf():
    counters, strategies = jacobi()
    outcome = Discussion(start(more=(less_than(S, ONE),)), counters, strategies).run(())
    assert outcome.root == Inconsistent()
    assert outcome.cases == ()
    assert outcome.notes[-1][0] == "start"


def test_integers_decide_where_reals_do_not():
    # 1 <= 2*B - 2*s <= 1 has real solutions and no integer ones.
    systems = Systems(start())
    answer = systems.consistent((at_most(2 * B - 2 * S, 1),), at_most(1, 2 * B - 2 * S))
    assert answer.verdict is Verdict.NO
    assert systems.solver_calls == 2


def test_each_version_is_evaluated_once():
    seen = []

    def count(version):
        seen.append(version)
        return 9 - len(version)

    improves = frozenset({"r1", "r2"})
    counters = [MadeCounter("r1", "R", count), MadeCounter("r2", "Z", lambda version: len(version) * S)]
    strategies = [MadeStrategy(f"O{i}", improves) for i in range(4)]
    outcome = Discussion(start(), counters, strategies).run(())
    assert len(seen) == len(set(seen))
    assert outcome.statistics.nodes > len(seen)


def test_time_runs_out():
    counters, strategies = jacobi()
    begin = start()
    outcome = Discussion(begin, counters, strategies, time_limit=0.0).run(())
    assert outcome.complete is False
    assert [case.strategies for case in outcome.cases] == [()]
    assert "time limit" in outcome.root.refuse.reason
    assert ("time limit", "cse1, cse2 not tried at the leaf after the input") in outcome.notes
    assert_sound(outcome, begin, strategies)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3)))[:4])
def test_optimality_and_idempotence_where_strategies_commute(order):
    base = [MadeStrategy(f"O{i}", frozenset({"r1", "r2"} if i else {"r1"})) for i in range(3)]
    strategies = [base[i] for i in order]
    counters = [
        MadeCounter("r1", "R", lambda version: 20 - sum(3 + int(name[1]) for name in version)),
        MadeCounter("r2", "Z", lambda version: 8 * S - sum(1 for name in version if name != "O0")),
    ]
    begin = start()
    outcome = Discussion(begin, counters, strategies).run(())
    assert commuting((), counters, strategies).verdict is Verdict.YES
    checks = optimality(outcome.counters, [case.version for case in outcome.cases], strategies) + idempotence(
        [c.version for c in outcome.cases], counters, strategies
    )
    assert [check.verdict for check in checks] == [Verdict.YES] * 5
    assert_sound(outcome, begin, strategies)


@dataclass(frozen=True)
class Again(MadeStrategy):
    """Idempotent, yet of use again after another strategy."""

    def apply(self, version, analyses=None):
        return Result(version if version[-1:] == (self.name,) else (*version, self.name))


def test_lemma_3_fails_where_strategies_do_not_commute():
    sizes = {(): 9, ("O1",): 9, ("O2",): 8, ("O1", "O2"): 8, ("O1", "O2", "O1"): 7}
    counters = [MadeCounter("r1", "R", lambda version: sizes.get(version, 7))]
    strategies = [Again("O1", frozenset({"r1"})), Again("O2", frozenset({"r1"}))]
    assert commuting((), counters, strategies).verdict is Verdict.NO
    outcome = Discussion(start(), counters, strategies).run(())
    assert [check.verdict for check in idempotence([()], counters, strategies)] == [Verdict.YES, Verdict.YES]
    [check] = optimality(outcome.counters, [case.version for case in outcome.cases], strategies)
    assert check.verdict is Verdict.NO
    assert "leaf 2: O1 may change it" in check.ground
