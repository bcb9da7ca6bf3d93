"""Predicates as sets of predicates: against truth tables, and in size."""

import itertools
import random

import pytest

from metafork.ptx.emulation.evaluate import Evaluator
from metafork.ptx.emulation.predicates import Flow, Predicates
from metafork.ptx.emulation.solver import Prover, Verdict
from metafork.ptx.emulation.states import State
from metafork.ptx.emulation.terms import MAXIMAL_TERMS, Poly, Terms
from metafork.ptx.text.flatten import flatten
from metafork.ptx.text.parser import parse
from tests.metafork.ptx.snippets import assert_same_results, deltas, kernel, shuffled


class Formulas:
    """Random predicates over some comparisons of parameters, each with the function that it stands for."""

    def __init__(self, seed, variables=5):
        self.random = random.Random(seed)
        self.terms = Terms()
        (function,) = parse(kernel("")).kernels()
        self.evaluator = Evaluator(self.terms, flatten(function))
        self.predicates = Predicates(self.terms, Prover(self.terms))
        bound = self.terms.special("%tid.x", 32)
        self.literals = [
            self.evaluator.compare("lt", bound, self.terms.atom("param", 32, (f"n{i}", 0)), signed=True)
            for i in range(variables)
        ]

    def formula(self, depth):
        choice = self.random.choice(["and", "or", "xor", "not"]) if depth else "literal"
        if choice == "literal":
            number = self.random.randrange(len(self.literals))
            return self.literals[number], lambda values: values[number]
        left, left_value = self.formula(depth - 1)
        if choice == "not":
            return self.terms.negate(left), lambda values: not left_value(values)
        right, right_value = self.formula(depth - 1)
        combine = {"and": lambda a, b: a and b, "or": lambda a, b: a or b, "xor": lambda a, b: a != b}[choice]
        poly = self.evaluator.bitwise(choice, left, right)
        return poly, lambda values: combine(left_value(values), right_value(values))

    def value(self, poly, values):
        """Evaluate a predicate where the comparisons have these values."""
        known = {literal.terms[0][0][0]: v for literal, v in zip(self.literals, values, strict=True)}
        total = bool(poly.constant)
        for (number,), _ in poly.terms:
            atom = self.terms.atoms[number]
            total ^= known[number] if number in known else all(self.value(part, values) for part in atom.args)
        return total

    def points(self):
        return itertools.product([False, True], repeat=len(self.literals))


@pytest.mark.parametrize("seed", range(60))
def test_formulas_mean_what_they_say(seed):
    formulas = Formulas(seed)
    poly, value = formulas.formula(4)
    for point in formulas.points():
        assert formulas.value(poly, point) == value(point)


@pytest.mark.parametrize("seed", range(60))
def test_what_a_true_condition_determines(seed):
    formulas = Formulas(seed)
    condition, holds = formulas.formula(3)
    other, value = formulas.formula(3)
    state = State()
    formulas.predicates.learn(condition, state)
    reduced = formulas.predicates.reduce(other, state)
    for point in formulas.points():
        if holds(point):
            assert formulas.value(reduced, point) == value(point)


@pytest.mark.parametrize("seed", range(8))
def test_the_solver_reads_them_alike(seed):
    formulas = Formulas(seed, variables=3)
    poly, value = formulas.formula(3)
    # Thresholds of one value: the comparisons are not independent, so the solver may refute more, never less.
    verdict = formulas.predicates.prover.feasible((poly,))
    if not any(value(point) for point in formulas.points()):
        assert verdict is Verdict.NO
    if all(value(point) for point in formulas.points()):
        assert verdict is Verdict.YES


def test_a_conjunction_does_not_multiply_terms():
    formulas = Formulas(0, variables=100)
    poly = formulas.literals[0]
    for literal in formulas.literals[1:]:
        poly = formulas.evaluator.bitwise("or", poly, literal)
    assert len(poly.terms) == 1
    state = State()
    formulas.predicates.assume(formulas.terms.negate(poly), state)
    assert all(formulas.predicates.reduce(literal, state).is_constant for literal in formulas.literals)
    assert formulas.predicates.classify(poly) is Flow.BOUND
    # What excludes itself is false, and what is said twice is said once.
    assert formulas.evaluator.bitwise("and", poly, formulas.terms.negate(poly)) == Poly(1, 0, ())
    assert formulas.evaluator.bitwise("or", poly, formulas.literals[7]) == poly


def test_chains_that_share_their_parts_take_linear_time():
    formulas = Formulas(0, variables=50)
    poly = formulas.literals[0]
    for one, other in itertools.pairwise(formulas.literals):
        ands = formulas.evaluator.bitwise("and", poly, one), formulas.evaluator.bitwise("and", poly, other)
        poly = formulas.evaluator.bitwise("or", *ands)
    state = State()
    formulas.predicates.learn(formulas.literals[40], state)
    assert formulas.predicates.classify(formulas.predicates.reduce(poly, state)) is Flow.BOUND
    assert len(formulas.terms.leaves(poly)) == 51


def test_operations_nested_thousands_deep_are_not_followed():
    mixing = "xor.b32 %r9, %r9, 305419896; shr.u32 %r10, %r9, 3; and.b32 %r9, %r9, %r10;" * 700
    chain = "setp.lt.s32 %p3, %r5, %r9; xor.pred %p2, %p2, %p3; and.pred %p2, %p2, %p4; or.pred %p2, %p2, %p3;" * 700
    before = kernel(f"""
    mov.u32 %r9, %r5; setp.lt.s32 %p2, %r5, 9; setp.lt.s32 %p4, %r5, 8; {chain} {mixing}
    mul.wide.u32 %rd6, %r9, 4; add.s64 %rd6, %rd4, %rd6; @%p2 bra DONE;
    ld.global.nc.f32 %f1, [%rd4]; ld.global.nc.f32 %f2, [%rd4+4]; ld.global.nc.f32 %f3, [%rd6];
    add.f32 %f1, %f1, %f2; add.f32 %f1, %f1, %f3; st.global.f32 [%rd5], %f1;
    """)
    assert shuffled(before)[1].loads == 3


GUARD = """
    mov.u32 %r9, %tid.y; mov.u32 %r10, %tid.z;
    setp.lt.s32 %p2, %r5, 2; setp.lt.s32 %p3, %r9, 1; or.pred %p2, %p2, %p3;
    setp.lt.s32 %p3, %r10, 0; or.pred %p2, %p2, %p3;
    add.s32 %r11, %r1, -3; setp.gt.s32 %p3, %r5, %r11; or.pred %p2, %p2, %p3; setp.gt.s32 %p3, %r9, %r11;
    or.pred %p2, %p2, %p3; setp.gt.s32 %p3, %r10, %r11; or.pred %p2, %p2, %p3; {more}
    @%p2 bra DONE;
    ld.global.nc.f32 %f1, [%rd4]; ld.global.nc.f32 %f2, [%rd4+4]; ld.global.nc.f32 %f3, [%rd4+-4];
    add.f32 %f1, %f1, %f2; fma.rn.f32 %f1, %f1, %f2, %f3; st.global.f32 [%rd5], %f1;
"""


@pytest.mark.parametrize("n", [100, 97, 37])
def test_a_guard_of_six_comparisons(n):
    before = kernel(GUARD.format(more=""))
    after, report = shuffled(before)
    assert sorted(deltas(report)) == [-1, 1]
    assert_same_results(before, after, n=n)


def test_a_bound_that_is_met_is_named():
    # (tid.x + x)(tid.x + y)... of 64 terms: the product of a condition's integers is not expanded.
    product = "mov.u32 %r20, 1;" + "".join(
        f"ld.param.u32 %r21, [n]; mov.u32 %r22, %ctaid.{axis}; add.s32 %r21, %r21, %r4; add.s32 %r21, %r21, %r22;"
        f"mov.u32 %r22, %nctaid.{axis}; add.s32 %r21, %r21, %r22; mul.lo.s32 %r20, %r20, %r21;"
        for axis in "xyz"
    )
    before = kernel(GUARD.format(more=f"{product} setp.gt.s32 %p3, %r20, %r1; or.pred %p2, %p2, %p3;"))
    _, report = shuffled(before)
    assert deltas(report) == []
    assert {left.reason for left in report.left_alone} == {
        f"a condition around it has products of more than {MAXIMAL_TERMS} terms, which are not compared"
    }
    # That a condition differs between lanes in an unknown way is something else.
    parity = "and.b32 %r20, %r4, 1; setp.eq.s32 %p3, %r20, 0; or.pred %p2, %p2, %p3;"
    _, report = shuffled(kernel(GUARD.format(more=parity)))
    assert {left.reason for left in report.left_alone} == {"it stands in divergent control flow"}
