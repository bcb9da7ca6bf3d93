"""``*.tree.json``: trees as JSON (DESIGN section 8; the JSON schema is ``schema/tree.schema.json``).

``tree_reading`` has the way back, which few runs need.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from comprehensive.systems.points import Number
from comprehensive.tree.document import InstanceDocument, LeafDocument, ScheduleDocument, TreeDocument
from comprehensive.tree.schedule_tree import CounterInfo, Inconsistent, LeafReference, Node, NoLeaf, Tree

FORMAT = "metafork-tree"
VERSION = 2
"""The newest version: a document without instances is written in version 1, which has none."""
SCHEMA = Path(__file__).parents[1] / "schema" / "tree.schema.json"

INCONSISTENT = "inconsistent"
"""How the format writes a child at which nothing arrives."""


def dumps(document: TreeDocument) -> str:
    """Return the JSON text of a document, ending in a newline."""
    return json.dumps(to_json(document), indent=1, ensure_ascii=False) + "\n"


def to_json(document: TreeDocument) -> dict[str, Any]:
    """Return a document as JSON values."""
    instances = any(leaf.instances for schedule in document.schedules for leaf in schedule.leaves)
    return {
        "format": FORMAT,
        "version": VERSION if instances else 1,
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
    sampled = {name: v.sampled for name, v in leaf.counters.items() if v.sampled}
    effects = {} if leaf.effects is None else {"effects": list(leaf.effects)}
    result: dict[str, Any] = {
        "id": leaf.id,
        "systems": [[schedule.text(constraint) for constraint in system] for system in leaf.systems],
        "strategies": list(leaf.strategies),
        **effects,
        "trace": list(leaf.trace),
        "kernel": leaf.kernel,
        "counters": {name: schedule.value_text(v) for name, v in leaf.counters.items()},
        **({"sampled": sampled} if sampled else {}),
        "witness": None if leaf.witness is None else {name: _number(n) for name, n in leaf.witness.items()},
    }
    if leaf.instances:
        result["instances"] = [_instance_to_json(schedule, one) for one in leaf.instances]
    return result


def _instance_to_json(schedule: ScheduleDocument, instance: InstanceDocument) -> dict[str, Any]:
    result: dict[str, Any] = {"kernel": instance.kernel, "values": dict(instance.values)}
    if instance.counters:
        result["counters"] = {name: schedule.value_text(value) for name, value in instance.counters.items()}
    if instance.system:
        result["system"] = [schedule.text(constraint) for constraint in instance.system]
    return result


def _number(number: Number) -> int | str:
    return int(number) if Fraction(number).denominator == 1 else str(number)
