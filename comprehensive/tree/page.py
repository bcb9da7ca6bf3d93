"""``report.html``: the trees of a file as one page without outside resources, for a browser.

The page asks for a GPU and for the parameters that decide, as ``metafork select`` does, and says which leaf and which
variant runs, and why.  The tree folds and can be searched, a map colours two parameters by what runs, and a leaf shows
its conditions and its variants with their limits, counters, MetaFork source and kernel.  The page carries the
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

from metafork.algebra.polynomial import Constraint, Polynomial
from metafork.algebra.symbols import DerivedSymbol
from metafork.comprehensive.systems.points import Number
from metafork.comprehensive.tree.colours import KINDS, spans
from metafork.comprehensive.tree.document import LeafDocument, ScheduleDocument, TreeDocument, VariantDocument
from metafork.comprehensive.tree.examples import gpus_for, point_to_show
from metafork.comprehensive.tree.legend import legend
from metafork.comprehensive.tree.render import escape
from metafork.comprehensive.tree.schedule_tree import (
    Inconsistent,
    LeafReference,
    NoLeaf,
    ScheduleTree,
    Tree,
    without_decided,
)
from metafork.comprehensive.tree.selection import without_unasked
from metafork.runtime.machine import gpus_of

ASSETS = Path(__file__).parent / "assets"
SCRIPTS = ("walk", "link", "chart", "view")


class LeafSource(Struct, frozen=True):
    """The texts of a variant that the page shows side by side."""

    metafork: str
    kernel: str


def html(document: TreeDocument, trees: Sequence[ScheduleTree], sources: Mapping[str, LeafSource]) -> str:
    """Return the page.  ``sources`` has the texts of leaves by the name of the kernel; a leaf may have none."""
    data = {
        "source": document.source,
        "kinds": KINDS,
        "schedules": [
            {**_schedule(schedule, sources), "notes": [list(note) for note in tree.notes]}
            for schedule, tree in zip(document.schedules, trees, strict=True)
        ],
    }
    style = (ASSETS / "page.css").read_text(encoding="utf-8")
    scripts = {name: (ASSETS / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS}
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {' '.join(map(_hash, scripts.values()))}"
    elements = "\n".join(f'<script id="{name}">{script}</script>' for name, script in scripts.items())
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
{elements}
</body>
</html>
"""


def _hash(text: str) -> str:
    return f"'sha256-{b2a_base64(hashlib.sha256(text.encode()).digest(), newline=False).decode()}'"


def _harmless(data: Any) -> str:
    """Return JSON in which nothing ends a script element or starts a comment of HTML."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _schedule(whole: ScheduleDocument, sources: Mapping[str, LeafSource]) -> dict[str, Any]:
    """Return what the page has of a schedule; it walks the one without the parameters that decide nothing."""
    schedule, unasked = without_unasked(whole, ())
    gpus = dict(gpus_for(schedule))
    opening = point_to_show(schedule, gpus)
    return {
        "name": schedule.name,
        "function": schedule.function,
        "line": schedule.line,
        "data": schedule.data,
        "program": schedule.program,
        "opaque": schedule.opaque,
        "machine": schedule.machine,
        "unasked": unasked,
        "fields": list(schedule.fields.items()),
        "fixed": _numbers(schedule.fixed),
        "gpus": [[preset, gpus_of(preset) or [preset], _numbers(point)] for preset, point in gpus.items()],
        "opening": [opening.gpu, _numbers(opening.point)],
        "derived": [_derived(schedule, symbol) for symbol in schedule.derived],
        "start": [_constraint(schedule, constraint) for constraint in schedule.start],
        "applies": [whole.said(constraint) for constraint in whole.start],
        "legend": legend(whole, whole.start),
        "root": _tree(schedule, schedule.root),
        "leaves": [_leaf(schedule, leaf, sources) for leaf in schedule.leaves],
        "complete": schedule.complete,
    }


def _numbers(point: Mapping[str, Number]) -> list[list[str]]:
    return [[name, str(number)] for name, number in point.items()]


def _polynomial(polynomial: Polynomial) -> list[Any]:
    """Return the terms: numerator and denominator as text (of any size), and the exponents of names."""
    terms = ((Fraction(coefficient), mono) for mono, coefficient in polynomial.terms().items())
    return [[str(value.numerator), str(value.denominator), [list(power) for power in mono]] for value, mono in terms]


def _constraint(schedule: ScheduleDocument, constraint: Constraint) -> dict[str, Any]:
    """Return what is computed and what is read.  ``exact`` is the form of the tree's JSON, where another is read."""
    plain, said, failed = schedule.plain(constraint), schedule.said(constraint), schedule.failed(constraint)
    exact = schedule.text(constraint)
    return {
        "text": said,
        **({} if exact == said else {"exact": exact}),
        **({} if failed == f"{said} does not hold" else {"failed": failed}),
        **({"words": True} if schedule.words(constraint) else {}),
        "left": _polynomial(plain.left),
        "relation": plain.relation,
        "right": _polynomial(plain.right),
    }


def _derived(schedule: ScheduleDocument, symbol: DerivedSymbol) -> dict[str, Any]:
    return {
        "name": symbol.name,
        "kind": symbol.kind,
        "text": symbol.definition(schedule.order),
        "denominator": symbol.operands[1].text(schedule.order),
        "operands": [_polynomial(operand) for operand in symbol.operands],
    }


def _tree(schedule: ScheduleDocument, tree: Tree, strategy: str | None = None) -> dict[str, Any]:
    """Return a tree without what the path decides; ``applied`` are the strategies on the way to it."""
    tree, later = without_decided(tree)
    applied = [*([] if strategy is None else [strategy]), *later]
    match tree:
        case LeafReference(leaf=leaf):
            return {"applied": applied, "leaf": leaf}
        case NoLeaf(reason=reason, beside=why):
            return {"applied": applied, "none": schedule.defined(reason), "beside": schedule.defined(why)}
        case Inconsistent():
            return {"applied": applied, "none": "inconsistent", "beside": "never"}
    return {
        "applied": applied,
        "counter": tree.counter,
        "condition": _constraint(schedule, tree.condition),
        "accept": _tree(schedule, tree.accept),
        "refuse": _tree(schedule, tree.refuse, tree.strategy),
    }


def _leaf(schedule: ScheduleDocument, leaf: LeafDocument, sources: Mapping[str, LeafSource]) -> dict[str, Any]:
    return {
        "id": leaf.id,
        "title": leaf.title,
        "systems": [[_constraint(schedule, constraint) for constraint in system] for system in leaf.systems],
        "witness": _numbers(leaf.witness or {}),
        "variants": [_variant(schedule, leaf.title_of(one), one, sources.get(one.kernel)) for one in leaf.variants],
    }


def _variant(
    schedule: ScheduleDocument, title: str, variant: VariantDocument, source: LeafSource | None
) -> dict[str, Any]:
    return {
        "number": variant.number,
        "title": title,
        "kernel": variant.kernel,
        "values": _numbers(variant.values),
        "limits": [_constraint(schedule, constraint) for constraint in variant.limits],
        "counters": [
            {
                "name": name,
                "text": schedule.said_value(value),
                "numerator": _polynomial(value.numerator),
                "denominator": _polynomial(value.denominator),
            }
            for name, value in variant.counters.items()
        ],
        **({} if source is None else _sources(source)),
    }


def _sources(source: LeafSource) -> dict[str, Any]:
    texts = [source.metafork, source.kernel]
    return {"sources": texts, "spans": [spans(text) for text in texts]}
