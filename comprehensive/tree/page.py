"""``report.html``: the trees of a file as one page without outside resources, for a browser.

The tree folds and can be searched; a leaf shows its conditions and its variants with their limits, counters, MetaFork
source and CUDA; numbers for the machine and the parameters light up the way to the leaf that ``metafork select`` would
choose, and name the variant.  The page carries the
conditions as exact polynomials, and ``assets/walk.js`` walks them with integers of any size.

What comes from the input goes into the page as JSON that holds no ``<``, and from there into text nodes only; the
page's policy admits its own scripts, by their hashes, and nothing from anywhere else.
"""

from __future__ import annotations

import hashlib
import json
from binascii import b2a_base64
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from msgspec import Struct

from comprehensive.tree.document import LeafDocument, ScheduleDocument, TreeDocument, VariantDocument
from comprehensive.tree.render import escape
from comprehensive.tree.schedule_tree import (
    CounterInfo,
    Inconsistent,
    LeafReference,
    Node,
    NoLeaf,
    ScheduleTree,
    Tree,
)
from metafork.algebra.polynomial import Constraint, Polynomial
from metafork.algebra.symbols import DerivedSymbol
from metafork.runtime.machine import PRESETS

ASSETS = Path(__file__).parent / "assets"


class LeafSource(Struct, frozen=True):
    """The texts of a leaf's kernel that the page shows side by side."""

    metafork: str
    cuda: str


def html(document: TreeDocument, trees: Sequence[ScheduleTree], sources: Mapping[str, LeafSource]) -> str:
    """Return the page.  ``sources`` has the texts of leaves by the name of the kernel; a leaf may have none."""
    data = {
        "source": document.source,
        "presets": {name: {key: str(value) for key, value in one.fields().items()} for name, one in PRESETS.items()},
        "schedules": [
            {**_schedule(schedule, sources), "notes": [list(note) for note in tree.notes]}
            for schedule, tree in zip(document.schedules, trees, strict=True)
        ],
    }
    walk, view, style = ((ASSETS / name).read_text(encoding="utf-8") for name in ("walk.js", "view.js", "page.css"))
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(walk)} {_hash(view)}"
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(document.source)} - MetaFork</title>
<style>{style}</style>
</head>
<body>
<noscript>This page needs JavaScript; report.md says the same.</noscript>
<script type="application/json" id="data">{_harmless(data)}</script>
<script id="walk">{walk}</script>
<script id="view">{view}</script>
</body>
</html>
"""


def _hash(text: str) -> str:
    return f"'sha256-{b2a_base64(hashlib.sha256(text.encode()).digest(), newline=False).decode()}'"


def _harmless(data: Any) -> str:
    """Return JSON in which nothing ends a script element or starts a comment of HTML."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _schedule(schedule: ScheduleDocument, sources: Mapping[str, LeafSource]) -> dict[str, Any]:
    return {
        "name": schedule.name,
        "function": schedule.function,
        "line": schedule.line,
        "data": schedule.data,
        "program": schedule.program,
        "opaque": schedule.opaque,
        "machine": schedule.machine,
        "fields": [list(pair) for pair in schedule.fields.items()],
        "fixed": [[name, str(number)] for name, number in schedule.fixed.items()],
        "targets": [[c.limit, "1" if c.target is None else str(c.target)] for c in _performance(schedule)],
        "derived": [_derived(schedule, symbol) for symbol in schedule.derived],
        "start": [_constraint(schedule, constraint) for constraint in schedule.start],
        "strategies": schedule.strategies,
        "root": _tree(schedule, schedule.root),
        "leaves": [_leaf(schedule, leaf, sources) for leaf in schedule.leaves],
        "complete": schedule.complete,
    }


def _performance(schedule: ScheduleDocument) -> list[CounterInfo]:
    return [counter for counter in schedule.counters if counter.kind == "performance"]


def _polynomial(polynomial: Polynomial) -> list[Any]:
    """Return the terms: numerator and denominator as text (of any size), and the exponents of names."""
    terms = ((Fraction(coefficient), mono) for mono, coefficient in polynomial.terms().items())
    return [[str(value.numerator), str(value.denominator), [list(power) for power in mono]] for value, mono in terms]


def _constraint(schedule: ScheduleDocument, constraint: Constraint) -> dict[str, Any]:
    constraint = schedule.plain(constraint)
    return {
        "text": schedule.text(constraint),
        "left": _polynomial(constraint.left),
        "relation": constraint.relation,
        "right": _polynomial(constraint.right),
    }


def _derived(schedule: ScheduleDocument, symbol: DerivedSymbol) -> dict[str, Any]:
    return {
        "name": symbol.name,
        "kind": symbol.kind,
        "text": symbol.definition(schedule.order),
        "denominator": symbol.operands[1].text(schedule.order),
        "operands": [_polynomial(operand) for operand in symbol.operands],
    }


def _tree(schedule: ScheduleDocument, tree: Tree) -> dict[str, Any]:
    match tree:
        case LeafReference(leaf=leaf):
            return {"leaf": leaf}
        case NoLeaf(reason=reason, system=system):
            conditions = [schedule.said(constraint) for constraint in system]
            return {"none": reason, "system": conditions, "never": False}
        case Inconsistent():
            return {"none": "inconsistent", "system": [], "never": True}
        case Node():
            return {
                "counter": tree.counter,
                "condition": _constraint(schedule, tree.condition),
                "accept": _tree(schedule, tree.accept),
                "strategy": tree.strategy,
                "refuse": _tree(schedule, tree.refuse),
            }


def _leaf(schedule: ScheduleDocument, leaf: LeafDocument, sources: Mapping[str, LeafSource]) -> dict[str, Any]:
    return {
        "id": leaf.id,
        "title": leaf.title,
        "systems": [[_constraint(schedule, constraint) for constraint in system] for system in leaf.systems],
        "witness": None if leaf.witness is None else [[name, str(number)] for name, number in leaf.witness.items()],
        "variants": [_variant(schedule, leaf.title_of(one), one, sources.get(one.kernel)) for one in leaf.variants],
    }


def _variant(
    schedule: ScheduleDocument, title: str, variant: VariantDocument, source: LeafSource | None
) -> dict[str, Any]:
    return {
        "number": variant.number,
        "title": title,
        "kernel": variant.kernel,
        "values": [[name, str(value)] for name, value in variant.values.items()],
        "limits": [_constraint(schedule, constraint) for constraint in variant.limits],
        "counters": [
            {
                "name": name,
                "text": schedule.value_text(value),
                "numerator": _polynomial(value.numerator),
                "denominator": _polynomial(value.denominator),
            }
            for name, value in variant.counters.items()
        ],
        "metafork": None if source is None else source.metafork,
        "cuda": None if source is None else source.cuda,
    }
