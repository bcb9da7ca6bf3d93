"""Limits in words: what is said of conditions that counters made, and that nothing else is said of the others."""

from fractions import Fraction

import pytest

from metafork.algebra.polynomial import ONE, Polynomial, at_most
from metafork.algebra.symbols import DerivedSymbol
from metafork.comprehensive.tree.document import LeafDocument, VariantDocument
from metafork.comprehensive.tree.schedule_tree import CounterInfo, LeafReference, Node, NoLeaf
from metafork.evaluators.counter import CounterValue
from tests.comprehensive.tree.pages import made, symbol

FIELDS = {
    "R": "registers_per_thread",
    "RB": "registers_per_block",
    "T": "threads_per_block",
    "Z": "shared_words",
    "W": "warps_per_sm",
}
COUNTERS = {
    "R": "registers_per_thread",
    "RB": "registers_per_block",
    "T": "threads_per_block",
    "Z": "shared_memory",
    "W": "mine",
}
B, QUADS, WAVES = symbol("B"), symbol("quads"), symbol("waves")
THREADS = B * symbol("C")


def schedule_with(value, limit, fixed=None, limits=()):
    """A schedule whose only node asks whether a counter's value is within its limit."""
    bound = symbol(limit) if fixed is None else Polynomial.constant(fixed)
    counter = CounterInfo(COUNTERS[limit], "resource", limit)
    value = CounterValue(value if isinstance(value, Polynomial) else Polynomial.constant(value))
    variant = VariantDocument(1, "k", counters={counter.name: value}, limits=limits)
    return made(
        data=(),
        program=("B", "C"),
        machine=tuple(FIELDS),
        fields=FIELDS,
        derived=(
            DerivedSymbol("quads", "ceiling", (THREADS, Polynomial.constant(128))),
            DerivedSymbol("waves", "ceiling", (THREADS, Polynomial.constant(256))),
        ),
        counters=(counter,),
        root=Node(counter.name, value, at_most(value.numerator, bound), LeafReference(1), None, NoLeaf("no")),
        leaves=(LeafDocument(1, ((),), (), (variant,)),),
        fixed={} if fixed is None else {limit: fixed},
    )


@pytest.mark.parametrize(
    ("value", "limit", "fixed", "accepted", "refused"),
    [
        (29, "R", None, "at least 29 registers per thread (R)", "fewer than 29 registers per thread (R)"),
        (THREADS, "T", None, "at most T threads per block (B*C)", "more than T threads per block (B*C)"),
        (THREADS, "T", 1024, "at most 1024 threads per block (B*C)", "more than 1024 threads per block (B*C)"),
        (
            QUADS * 11264,
            "RB",
            65536,
            "at most 20 warps of 88 allotted registers per thread (B*C <= 640)",
            "more than 20 warps of 88 allotted registers per thread (B*C >= 641)",
        ),
        (
            WAVES * 26624,
            "RB",
            65536,
            "at most 8 warps of 104 allotted registers per thread (B*C <= 512)",
            "more than 8 warps of 104 allotted registers per thread (B*C >= 513)",
        ),
        (
            QUADS * 4096,
            "RB",
            None,
            "32 allotted registers per thread fit (4096*ceil((B*C)/128) <= RB)",
            "32 allotted registers per thread do not fit (4096*ceil((B*C)/128) > RB)",
        ),
        # no whole registers per thread, and no groups of four warps
        (
            QUADS * 900,
            "RB",
            None,
            "at most RB registers per block (900*ceil((B*C)/128))",
            "more than RB registers per block (900*ceil((B*C)/128))",
        ),
        (
            THREADS * 7,
            "RB",
            65536,
            "at most 65536 registers per block (7*B*C)",
            "more than 65536 registers per block (7*B*C)",
        ),
        (9216, "RB", None, "at least 9216 registers per block (RB)", "fewer than 9216 registers per block (RB)"),
        (B * 2, "Z", None, "2*B <= Z", "Z < 2*B"),
        (B * Fraction(1, 2), "W", None, "B/2 <= W", "W < B/2"),
    ],
)
def test_a_limit_is_said_by_what_it_limits(value, limit, fixed, accepted, refused):
    schedule = schedule_with(value, limit, fixed)
    condition = schedule.root.condition
    assert schedule.said(condition) == accepted
    assert schedule.said(condition.negated()) == refused
    assert schedule.failed(condition) == (refused if " per " in refused else f"{accepted} does not hold")


@pytest.mark.parametrize(
    ("counter", "value", "limits", "together", "needed"),
    [
        ("T", THREADS, (at_most(32, THREADS),), "at least one full warp (B*C >= 32)", None),
        ("T", THREADS, (at_most(64, THREADS),), "at least 64 threads per block (B*C)", None),
        ("R", 95, (at_most(95, symbol("R")),), "at least 95 registers per thread (R)", "needs 95 registers per thread"),
        ("Z", B, (at_most(ONE, B), at_most(B, symbol("Z"))), "1 <= B <= Z", "needs B >= 1 and B <= Z"),
        ("T", B, (at_most(32, B), at_most(B, 64)), "at least one full warp (B >= 32) and B <= 64", None),
    ],
)
def test_limits_of_variants(counter, value, limits, together, needed):
    schedule = schedule_with(value, counter, limits=limits)
    assert schedule.said_together(limits) == together
    assert needed is None or schedule.needed(limits) == needed
    assert schedule.said_together(limits, "`").count("`") % 2 == 0


@pytest.mark.parametrize(
    ("least", "failed"), [(32, "no full warp (B*C < 32)"), (64, "fewer than 64 threads per block (B*C)")]
)
def test_a_limit_of_threads_that_fails(least, failed):
    limit = at_most(least, THREADS)
    assert schedule_with(THREADS, "T", limits=(limit,)).failed(limit) == failed
