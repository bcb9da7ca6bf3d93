"""Pages of report.html that several tests look at, and programs with names that JavaScript has too."""

import warnings
from fractions import Fraction
from pathlib import Path

import pytest

from metafork.algebra.polynomial import ONE, Polynomial, at_most, equal, less_than
from metafork.algebra.symbols import DerivedSymbol
from metafork.comprehensive.leaf_files import LeafTexts
from metafork.comprehensive.tree import page
from metafork.comprehensive.tree.document import LeafDocument, ScheduleDocument, TreeDocument, VariantDocument
from metafork.comprehensive.tree.schedule_tree import CounterInfo, LeafReference, Node, NoLeaf, ScheduleTree
from metafork.evaluators.counter import CounterValue

EXAMPLES = Path(__file__).parents[3] / "examples"
QUICK = {"counters": ["threads_per_block", "shared_memory"], "strategies": ["granularity", "caching"]}
PROTOTYPES = """\
void f(int constructor, int __proto__, int toString, float a[constructor])
{
  int valueOf = constructor / (__proto__ * toString);
  meta_schedule cache(a) {
    meta_for (int i = 0; i < valueOf; i++)
      meta_for (int j = 0; j < __proto__; j++)
        for (int k = 0; k < toString; k++) {
          int p = (i * toString + k) * __proto__ + j;
          a[p] = a[p] * 2;
        }
  }
}
"""


def page_of(result):
    return page.html(result.document, result.schedules, LeafTexts(result.analyses).sources(result))


def skip_loudly(reason):
    warnings.warn(reason, stacklevel=2)  # the summary of warnings has it, whatever pytest says of skips
    pytest.skip(reason)


def symbol(name):
    return Polynomial.symbol(name)


def made(name="made", **changes):
    """A schedule with all kinds of derived symbols, fractions, an equation, a quotient, and a region without a leaf."""
    x, y, low, high = map(symbol, ("x", "y", "low", "high"))
    half = Polynomial({(("x", 3),): Fraction(1, 2), (("x", 1), ("y", 2)): Fraction(-2, 3)})
    root = Node(
        "cost",
        CounterValue(x * y, y + 1),
        less_than(half, symbol("P") * (y + 1)),
        Node("cost", CounterValue(x), equal(low, high), LeafReference(1), "other", LeafReference(2)),
        None,
        NoLeaf("too much", (at_most(1, x),)),
    )
    counters = {"cost": CounterValue(x * y + Fraction(1, 3), y + 1)}
    fields = {
        "name": name,
        "function": "made",
        "line": 1,
        "data": ("x",),
        "program": ("y",),
        "machine": ("P",),
        "fields": {"P": "cost"},
        "derived": (
            DerivedSymbol("low", "floor", (x * x, y - 3)),
            DerivedSymbol("up", "ceiling", (x - y * y, Polynomial.constant(4))),
            DerivedSymbol("high", "maximum", (symbol("up"), x - 5, low)),
            DerivedSymbol("least", "minimum", (x, y, symbol("up"))),
        ),
        "start": (at_most(symbol("least"), symbol("up") + 7),),
        "counters": (CounterInfo("cost", "performance", "P", True, Fraction(1, 4)),),
        "strategies": ("other",),
        "root": root,
        "leaves": (
            LeafDocument(
                1,
                ((equal(low, high),), (at_most(x, 9), at_most(ONE, y))),
                (),
                (VariantDocument(1, "k1_v1", limits=(at_most(half, y),)), VariantDocument(2, "k1", (), None, counters)),
            ),
            LeafDocument(
                2,
                ((less_than(high, low), at_most(y, 2)), (at_most(x, 3),)),
                (),
                (VariantDocument(1, "k2", ("other",), None, counters),),
            ),
        ),
        "fixed": {"W": Fraction(1, 3)},
    }
    return ScheduleDocument(**(fields | changes))


def tree_of(schedule, notes=()):
    """The part of a tree that the page reads beside the document."""
    tree = object.__new__(ScheduleTree)
    object.__setattr__(tree, "notes", notes)
    return tree


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)><!--<script>&\u2028'\""


def hostile_page():
    schedule = made(HOSTILE, function=HOSTILE, strategies=(HOSTILE,))
    sources = {kernel: page.LeafSource(HOSTILE, HOSTILE) for kernel in ("k1", "k2")}
    return page.html(TreeDocument(HOSTILE, (schedule,)), [tree_of(schedule, ((HOSTILE, HOSTILE),))], sources)
