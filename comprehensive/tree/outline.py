"""A decision tree as lines for the screen: which leaf runs where, in the order in which it is asked."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from metafork.comprehensive.tree.document import LeafDocument, ScheduleDocument, VariantDocument
from metafork.comprehensive.tree.schedule_tree import (
    Inconsistent,
    LeafReference,
    Node,
    NoLeaf,
    Tree,
    title_of,
    values_text,
    without_decided,
)

WIDTH = 98  # less the two that it is indented by
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
    lines = textwrap.wrap(
        re.sub(r" (<=|>=|<|>|=|\+|-) ", "\u00a0\\1\u00a0", text),  # formulas stay in one line
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

    def lines(self) -> Iterator[str]:
        if self._common:
            yield from wrapped(f"all: {', '.join(self._common)}", more="  ")
        tree, _ = without_decided(self._schedule.root)
        if isinstance(tree, Node):
            yield from self._below(tree, "")
        else:
            yield from self._end(tree, "", "", "  ")

    def _below(self, tree: Tree, indent: str) -> Iterator[str]:
        """Yield an item for each condition, ends first; what is asked next stands below it at the same depth."""
        while isinstance(tree, Node):
            accept, refuse = (without_decided(side)[0] for side in (tree.accept, tree.refuse))
            asked = tree.condition
            if isinstance(accept, Node) and not isinstance(refuse, Node):
                accept, refuse, asked = refuse, accept, asked.negated()
            yield from self._item(self._schedule.said(asked), accept, f"{indent}|- ", f"{indent}|  ")
            tree = refuse
        yield from self._item("otherwise", tree, f"{indent}`- ", f"{indent}   ")

    def _item(self, condition: str, tree: Tree, first: str, more: str) -> Iterator[str]:
        if isinstance(tree, Node):
            yield from wrapped(f"{condition}:", first, f"{more}  ")
            yield from self._below(tree, more)
        else:
            yield from self._end(tree, f"{condition}: ", first, more)

    def _end(self, tree: Tree, condition: str, first: str, more: str) -> Iterator[str]:
        match tree:
            case LeafReference(leaf=number) if number in self._seen:
                yield from wrapped(f"{condition}leaf {number}", first, f"{more}  ")
            case LeafReference(leaf=number):
                self._seen.add(number)
                leaf = self._leaves[number]
                yield from wrapped(f"{condition}leaf {number} ({self._title(leaf)})", first, f"{more}  ")
                yield from self._variants(leaf, more)
            case NoLeaf(beside=why):
                yield from wrapped(
                    f"{condition}the serial code runs{why and f': {self._schedule.defined(why)}'}", first, f"{more}  "
                )
            case Inconsistent():
                yield from wrapped(f"{condition}never", first, f"{more}  ")

    def _title(self, leaf: LeafDocument) -> str:
        if leaf.own.effects is None:
            return leaf.title
        rest = [one for one in leaf.own.effects if one not in self._common]
        return title_of(rest) if rest or not self._common else "no more than that"

    def _variants(self, leaf: LeafDocument, more: str) -> Iterator[str]:
        for one in leaf.variants[:-1]:
            if not one.values:
                limits = self._schedule.said_together(one.limits)
                yield from wrapped(f"with {leaf.title_of(one)} if {limits}", f"{more}  ", f"{more}    ")
        values = [self._instance(one) for one in leaf.variants if one.values]
        if values:
            yield from wrapped(f"also compiled for {'; '.join(values)}", f"{more}  ", f"{more}    ")

    def _instance(self, variant: VariantDocument) -> str:
        needs = self._schedule.needed(variant.limits)
        return values_text(variant.values) + (needs and f" ({needs})")
