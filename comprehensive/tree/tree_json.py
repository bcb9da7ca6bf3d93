"""``*.tree.json``: trees as JSON and back (DESIGN section 8; the JSON schema is ``schema/tree.schema.json``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from comprehensive.systems.inequality_text import InequalityError, definition, inequality, value
from comprehensive.systems.points import Number
from comprehensive.tree.document import InstanceDocument, LeafDocument, ScheduleDocument, TreeDocument
from comprehensive.tree.schedule_tree import CounterInfo, LeafReference, Node, NoLeaf, Tree
from evaluators.counter import CounterValue
from metafork.runtime.machine import SYMBOLS as LIMITS

FORMAT = "metafork-tree"
VERSION = 2
"""The newest version: a document without instances is written in version 1, which has none."""
SCHEMA = Path(__file__).parents[1] / "schema" / "tree.schema.json"


class TreeFormatError(ValueError):
    """A file is no ``metafork-tree`` of a version that is read here; the message says what is wrong."""


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
    if counter.kind == "performance":
        result["better"] = "less" if counter.less_is_better else "more"
        if counter.target is not None:
            result["target"] = _number(counter.target)
    return result


def _tree_to_json(schedule: ScheduleDocument, tree: Tree) -> dict[str, Any]:
    match tree:
        case LeafReference(leaf=leaf):
            return {"leaf": leaf}
        case NoLeaf(reason=reason, system=system):
            return {"none": reason} | ({"system": [schedule.text(c) for c in system]} if system else {})
        case Node():
            return {
                "counter": tree.counter,
                "value": schedule.value_text(tree.value),
                "condition": schedule.text(tree.condition),
                "accept": _tree_to_json(schedule, tree.accept),
                "strategy": tree.strategy,
                "refuse": _tree_to_json(schedule, tree.refuse),
            }


def _leaf_to_json(schedule: ScheduleDocument, leaf: LeafDocument) -> dict[str, Any]:
    result: dict[str, Any] = {
        "id": leaf.id,
        "systems": [[schedule.text(constraint) for constraint in system] for system in leaf.systems],
        "strategies": list(leaf.strategies),
        "trace": list(leaf.trace),
        "kernel": leaf.kernel,
        "counters": {name: schedule.value_text(v) for name, v in leaf.counters.items()},
        "witness": None if leaf.witness is None else {name: _number(n) for name, n in leaf.witness.items()},
    }
    if leaf.instances:
        result["instances"] = [{"kernel": one.kernel, "values": dict(one.values)} for one in leaf.instances]
    return result


def _number(number: Number) -> int | str:
    return int(number) if Fraction(number).denominator == 1 else str(number)


def load(path: Path) -> TreeDocument:
    """Read a ``*.tree.json``.  Raises ``OSError`` and ``TreeFormatError``."""
    try:
        return from_json(json.loads(path.read_text(encoding="utf-8")))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise TreeFormatError(f"{path} is no JSON: {error}") from error


def from_json(data: Any) -> TreeDocument:
    """Return the document that JSON values describe.  Raises ``TreeFormatError``."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise TreeFormatError(f'not a decision tree: "format" is not "{FORMAT}"')
    if data.get("version") not in (1, VERSION):
        raise TreeFormatError(f"version {data.get('version')!r} of {FORMAT} is not read here, only 1 to {VERSION}")
    try:
        return TreeDocument(data["source"], tuple(_schedule(entry) for entry in data["schedules"]))
    except InequalityError as error:
        raise TreeFormatError(str(error)) from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise TreeFormatError(f"not a valid {FORMAT}: {type(error).__name__}: {error}") from error


def _schedule(data: Mapping[str, Any]) -> ScheduleDocument:
    parameters = data["parameters"]
    groups = {kind: tuple(parameters[kind]) for kind in ("data", "program", "machine")}
    fixed = {name: _parsed(number) for name, number in data.get("fixed", {}).items()}
    opaque = tuple(data.get("opaque", ()))
    symbols = {name for group in groups.values() for name in group} | {*opaque, *fixed}
    derived = []
    for entry in data["derived"]:
        derived.append(definition(entry["name"], entry["definition"], symbols))
        symbols.add(entry["name"])
    fields = data.get("fields") or {symbol: _field(symbol) for symbol in groups["machine"]}
    return ScheduleDocument(
        name=data["name"],
        function=data["function"],
        line=data["line"],
        data=groups["data"],
        program=groups["program"],
        machine=groups["machine"],
        fields=fields,
        derived=tuple(derived),
        start=tuple(inequality(text, symbols) for text in data["start"]),
        counters=tuple(_counter(entry) for entry in data["counters"]),
        strategies=tuple(data["strategies"]),
        root=_tree(data["root"], symbols),
        leaves=tuple(_leaf(entry, symbols) for entry in data["leaves"]),
        fixed=fixed,
        opaque=opaque,
        complete=data.get("complete", True),
    )


def _field(symbol: str) -> str:
    """The field of a machine symbol in a document that does not say: the symbol before it was renamed."""
    canonical = {usual: name for name, usual in LIMITS.items()}
    return canonical.get(symbol.rstrip("_"), symbol)


def _counter(data: Mapping[str, Any]) -> CounterInfo:
    target = None if data.get("target") is None else Fraction(data["target"])
    return CounterInfo(data["name"], data["kind"], data["limit"], data.get("better", "less") == "less", target)


def _tree(data: Mapping[str, Any], symbols: set[str]) -> Tree:
    if "leaf" in data:
        return LeafReference(data["leaf"])
    if "none" in data:
        return NoLeaf(data["none"], tuple(inequality(text, symbols) for text in data.get("system", ())))
    return Node(
        data["counter"],
        CounterValue(*value(data["value"], symbols)),
        inequality(data["condition"], symbols),
        _tree(data["accept"], symbols),
        data["strategy"],
        _tree(data["refuse"], symbols),
    )


def _leaf(data: Mapping[str, Any], symbols: set[str]) -> LeafDocument:
    witness = data["witness"]
    return LeafDocument(
        data["id"],
        tuple(tuple(inequality(text, symbols) for text in system) for system in data["systems"]),
        tuple(data["strategies"]),
        tuple(data["trace"]),
        data["kernel"],
        {name: CounterValue(*value(text, symbols)) for name, text in data["counters"].items()},
        None if witness is None else {name: _parsed(number) for name, number in witness.items()},
        tuple(
            InstanceDocument(number, {name: int(value) for name, value in entry["values"].items()}, entry["kernel"])
            for number, entry in enumerate(data.get("instances", ()), 1)
        ),
    )


def _parsed(number: int | str) -> Number:
    return number if isinstance(number, int) else Fraction(number)
