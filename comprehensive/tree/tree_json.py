"""``*.tree.json``: trees as JSON (DESIGN section 8; the JSON schema is ``schema/tree.schema.json``).

``tree_reading`` has the way back, which few runs need.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from metafork.comprehensive.systems.points import Number
from metafork.comprehensive.tree.document import LeafDocument, ScheduleDocument, TreeDocument, VariantDocument
from metafork.comprehensive.tree.schedule_tree import CounterInfo, Inconsistent, LeafReference, Node, NoLeaf, Tree

FORMAT = "metafork-tree"
VERSION = 3
"""The newest version; of the older ones a leaf has a kernel, and beside it instances (since version 2)."""
SCHEMA = Path(__file__).parents[1] / "schema" / "tree.schema.json"

INCONSISTENT = "inconsistent"
"""How the format writes a child at which nothing arrives."""


def dumps(document: TreeDocument) -> str:
    """Return the JSON text of a document, ending in a newline."""
    return json.dumps(to_json(document), indent=1, ensure_ascii=False) + "\n"


def to_json(document: TreeDocument) -> dict[str, Any]:
    """Return a document as JSON values."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "source": document.source,
        "schedules": [_schedule_to_json(schedule) for schedule in document.schedules],
    }


def _schedule_to_json(schedule: ScheduleDocument) -> dict[str, Any]:
    result: dict[str, Any] = {
        "name": schedule.name,
        "function": schedule.function,
        "line": schedule.line,
        "parameters": {
            "data": list(schedule.data),
            "program": list(schedule.program),
            "machine": list(schedule.machine),
        },
        "fields": dict(schedule.fields),
        "derived": [{"name": d.name, "definition": d.definition(schedule.order)} for d in schedule.derived],
        "start": [schedule.text(constraint) for constraint in schedule.start],
        "counters": [_counter_to_json(counter) for counter in schedule.counters],
        "strategies": list(schedule.strategies),
        "root": _tree_to_json(schedule, schedule.root),
        "leaves": [_leaf_to_json(schedule, leaf) for leaf in schedule.leaves],
    }
    if schedule.fixed:
        result["fixed"] = {name: _number(number) for name, number in schedule.fixed.items()}
    if schedule.opaque:
        result["opaque"] = list(schedule.opaque)
    if not schedule.complete:
        result["complete"] = False
    return result


def _counter_to_json(counter: CounterInfo) -> dict[str, Any]:
    result: dict[str, Any] = {"name": counter.name, "kind": counter.kind, "limit": counter.limit}
    if counter.unit:
        result["unit"] = counter.unit
    if counter.own is not None:
        result["machine"] = {"default": counter.own.default, "presets": dict(counter.own.presets)}
    if counter.kind == "performance":
        result["better"] = "less" if counter.less_is_better else "more"
        if counter.target is not None:
            result["target"] = _number(counter.target)
    return result


def _tree_to_json(schedule: ScheduleDocument, tree: Tree) -> dict[str, Any]:
    match tree:
        case LeafReference(leaf=leaf):
            return {"leaf": leaf}
        case Inconsistent():
            return {"none": INCONSISTENT}
        case NoLeaf(reason=reason, system=system, brief=brief):
            region = {"system": [schedule.text(c) for c in system]} if system else {}
            return {"none": reason} | region | ({"brief": brief} if brief not in ("", reason) else {})
        case Node():
            return {
                "counter": tree.counter,
                "value": schedule.value_text(tree.value),
                **({"sampled": tree.value.sampled} if tree.value.sampled else {}),
                "condition": schedule.text(tree.condition),
                "accept": _tree_to_json(schedule, tree.accept),
                "strategy": tree.strategy,
                "refuse": _tree_to_json(schedule, tree.refuse),
            }


def _leaf_to_json(schedule: ScheduleDocument, leaf: LeafDocument) -> dict[str, Any]:
    return {
        "id": leaf.id,
        "systems": [[schedule.text(constraint) for constraint in system] for system in leaf.systems],
        "trace": list(leaf.trace),
        "witness": None if leaf.witness is None else {name: _number(n) for name, n in leaf.witness.items()},
        "variants": [_variant_to_json(schedule, one) for one in leaf.variants],
    }


def _variant_to_json(schedule: ScheduleDocument, variant: VariantDocument) -> dict[str, Any]:
    sampled = {name: value.sampled for name, value in variant.counters.items() if value.sampled}
    return {
        "kernel": variant.kernel,
        **({"values": dict(variant.values)} if variant.values else {}),
        "strategies": list(variant.strategies),
        **({"schedule": variant.schedule} if variant.schedule else {}),
        **({} if variant.effects is None else {"effects": list(variant.effects)}),
        "limits": [schedule.text(constraint) for constraint in variant.limits],
        "counters": {name: schedule.value_text(value) for name, value in variant.counters.items()},
        **({"sampled": sampled} if sampled else {}),
    }


def _number(number: Number) -> int | str:
    return int(number) if Fraction(number).denominator == 1 else str(number)
