"""A decision tree as lines for the screen: which leaf runs where, in the order in which it is asked."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterator, Mapping

from metafork.comprehensive.systems.points import Number
from metafork.comprehensive.tree.document import LeafDocument, ScheduleDocument, VariantDocument
from metafork.comprehensive.tree.examples import Shown, another
from metafork.comprehensive.tree.schedule_tree import (
    LeafReference,
    Node,
    NoLeaf,
    Tree,
    title_of,
    without_decided,
)

WIDTH = 98  # less the two that it is indented by
MOST_BESIDE = 48
"""Of longer conditions what runs there stands in the next line."""

MOST_LINES = 60
"""More are for the report."""


def outline(schedule: ScheduleDocument) -> list[str]:
    """Return the conditions on the way to each leaf, and what is said of it where it stands first."""
    lines = list(_Outline(schedule).lines())
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], "... report.md has the rest"]
    return lines


def wrapped(text: str, indent: str = "", more: str = "") -> list[str]:
    """Return a text in lines that fit; those after the first begin with ``more``."""
    text = re.sub(r"\bleaf (?=\d)", "leaf\u00a0", text)
    lines = textwrap.wrap(
        re.sub(r" (<=|>=|->|<|>|=|\+|-) ", "\u00a0\\1\u00a0", text),  # formulas stay in one line
        max(WIDTH, len(more) + 40),
        initial_indent=indent,
        subsequent_indent=more,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\u00a0", " ") for line in lines]


class _Outline:
    """The lines of one schedule; what all leaves do stands in front of them."""

    def __init__(self, schedule: ScheduleDocument) -> None:
        self._schedule = schedule
        self._seen: set[int] = set()
        self._leaves = {leaf.id: leaf for leaf in schedule.leaves}
        own = [leaf.own.effects or () for leaf in schedule.leaves]
        self._common = [one for one in own[0] if all(one in each for each in own)] if len(own) > 1 else []
        self._tree, _ = without_decided(schedule.root)
        self._column = max((len(one) for one in self._conditions(self._tree, "") if len(one) <= MOST_BESIDE), default=0)

    def lines(self) -> Iterator[str]:
        if self._common:
            yield from wrapped(f"all leaves: {', '.join(self._common)}", more="  ")
        if isinstance(self._tree, Node):
            yield from self._below(self._tree, "")
        else:
            yield from self._end(self._tree, "", "  ")

    def _asked(self, tree: Node) -> tuple[str, Tree, Tree]:
        """Return a condition in words, what is below it and what is asked otherwise: an end stands before a node."""
        accept, refuse = (without_decided(side)[0] for side in (tree.accept, tree.refuse))
        asked = tree.condition
        if isinstance(accept, Node) and not isinstance(refuse, Node):
            accept, refuse, asked = refuse, accept, asked.negated()
        return self._schedule.said(asked), accept, refuse

    def _conditions(self, tree: Tree, indent: str) -> Iterator[str]:
        """Yield the beginnings of the lines behind which an end stands."""
        while isinstance(tree, Node):
            condition, below, tree = self._asked(tree)
            if isinstance(below, Node):
                yield from self._conditions(below, f"{indent}|  ")
            else:
                yield f"{indent}|- {condition}"
        yield f"{indent}`- otherwise"

    def _below(self, tree: Tree, indent: str) -> Iterator[str]:
        """Yield an item for each condition, ends first; what is asked next stands below it at the same depth."""
        while isinstance(tree, Node):
            condition, below, tree = self._asked(tree)
            more = f"{indent}|  "
            if isinstance(below, Node):
                yield from wrapped(f"{condition}:", f"{indent}|- ", f"{more}  ")
                yield from self._below(below, more)
            else:
                yield from self._end(below, f"{indent}|- {condition}", more)
        yield from self._end(tree, f"{indent}`- otherwise", f"{indent}   ")

    def _end(self, tree: Tree, start: str, more: str) -> Iterator[str]:
        """Yield the line of a condition with what runs there in the column behind it, and what belongs to a leaf."""
        said = self._said(tree)
        if not start:
            yield from wrapped(said, more="  ")
        elif len(start) <= self._column:
            dots = "." * (self._column - len(start) + 3)
            yield from wrapped(said, f"{start} {dots} ", f"{more}{' ' * (self._column + 5 - len(more))}")
        else:
            condition = start.removeprefix(more[:-3])
            yield from wrapped(f"{condition[3:]}:", f"{more[:-3]}{condition[:3]}", f"{more}  ")
            yield from wrapped(said, f"{more}  ", f"{more}    ")
        if isinstance(tree, LeafReference) and tree.leaf not in self._seen:
            self._seen.add(tree.leaf)
            yield from self._variants(self._leaves[tree.leaf], more)

    def _said(self, tree: Tree) -> str:
        match tree:
            case LeafReference(leaf=number):
                leaf = self._leaves[number]
                return f"leaf {number}" if number in self._seen else f"leaf {number} ({self._title(leaf)})"
            case NoLeaf(beside=why):
                return f"the serial code{why and f': {self._schedule.defined(why)}'}"
        return "never"

    def _title(self, leaf: LeafDocument) -> str:
        if leaf.own.effects is None:
            return leaf.title
        rest = [one for one in leaf.own.effects if one not in self._common]
        return title_of(rest) if rest or not self._common else "no more than that"

    def _variants(self, leaf: LeafDocument, more: str) -> Iterator[str]:
        """Yield how many results a thread may have and when, with the registers of each, and the instances."""
        others = [one for one in leaf.variants[:-1] if not one.values]
        if others:
            titles = [*map(leaf.title_of, others), "general kernel"]
            width = max(len(title) for title in titles if len(title) <= MOST_BESIDE)
            for title, one in zip(titles, (*others, leaf.own), strict=True):
                limits = self._schedule.said_together(one.limits)
                text = ", ".join(filter(None, (_registers(one), limits and f"if {limits}")))
                yield from wrapped(text, f"{more}  {title:{width}}  ", f"{more}{' ' * (width + 6)}")
        values = [self._instance(one) for one in leaf.variants if one.values]
        if values:
            yield from wrapped(f"also compiled for {', '.join(values)}", f"{more}  ", f"{more}    ")

    def _instance(self, variant: VariantDocument) -> str:
        needs = self._schedule.needed(variant.limits)
        return f"{given(variant.values)}{needs and f' ({needs})'}"


def given(values: Mapping[str, Number]) -> str:
    """Print values of parameters as they are typed, as one word where lines are wrapped: ``B0=16 s=4``."""
    return "\u00a0".join(f"{name}={value}" for name, value in values.items())


def _registers(variant: VariantDocument) -> str:
    value = variant.counters.get("registers_per_thread")
    return "" if value is None else f"{value.numerator.text()} registers"


def example_lines(schedule: ScheduleDocument, shown: Shown) -> list[str]:
    """Return what runs on one GPU at the point that is shown, and at another one, where something else runs."""
    if shown.gpu is None or shown.chosen.variant is None:
        return []
    other = another(schedule, shown)
    same = {
        name: shown.point[name] for name in schedule.data if other is None or shown.point[name] == other.point[name]
    }
    where = f"on {', '.join(filter(None, (shown.gpu, given(same))))}:"
    runs = [_runs(schedule, one, same) for one in (shown, other) if one is not None]
    return wrapped(f"{where} {'; '.join(runs)}", more="  ")


def _runs(schedule: ScheduleDocument, shown: Shown, said: Collection[str]) -> str:
    """Return what runs at a point, less the parameters that are said of all points."""
    variant = shown.chosen.variant
    assert variant is not None
    leaf = schedule.leaves[shown.chosen.leaf - 1]
    own = {name: shown.point[name] for name in (*schedule.data, *schedule.program) if name not in said}
    what = f"leaf {leaf.id}"
    if variant.values:
        what += ", compiled for these values"
    elif variant is not leaf.own:
        what += f", {leaf.title_of(variant)}"
    elif len(leaf.variants) > 1:
        what += ", general kernel"
    return f"{given(own)} -> {what}" if own else what
