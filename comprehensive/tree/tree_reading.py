"""Trees from ``*.tree.json``, as ``tree_json`` writes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from metafork.algebra.polynomial import Constraint
from metafork.comprehensive.systems.inequality_text import InequalityError, definition, inequality, value
from metafork.comprehensive.tree.document import LeafDocument, ScheduleDocument, TreeDocument, VariantDocument
from metafork.comprehensive.tree.schedule_tree import CounterInfo, Inconsistent, LeafReference, Node, NoLeaf, Tree
from metafork.comprehensive.tree.tree_fields import TreeFormatError, Value, parsed
from metafork.comprehensive.tree.tree_json import FORMAT, INCONSISTENT, VERSION
from metafork.evaluators.counter import CounterValue
from metafork.runtime.machine import SYMBOLS as LIMITS
from metafork.runtime.machine import MachineError, OwnLimit

Parsed = TypeVar("Parsed")


def load(path: Path) -> TreeDocument:
    """Read a ``*.tree.json``.  Raises ``OSError`` and ``TreeFormatError``."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TreeFormatError(f"it is no JSON: {error}") from error
    return from_json(parsed(text))


def from_json(data: Any) -> TreeDocument:
    """Return the document that JSON values describe.  Raises ``TreeFormatError``."""
    value = data if isinstance(data, Value) else Value(data)
    if not value.has("format") or value["format"].raw != FORMAT:
        raise TreeFormatError(f'not a decision tree: "format" is not "{FORMAT}"')
    version = value["version"]
    if version.raw not in range(1, VERSION + 1) or isinstance(version.raw, (bool, float)):
        raise version.fault(f"this version of {FORMAT} is not read here, only 1 to {VERSION}")
    schedules = tuple(_schedule(entry) for entry in value["schedules"].elements())
    return TreeDocument(value["source"].text(), schedules)


def _schedule(data: Value) -> ScheduleDocument:
    parameters = data["parameters"]
    groups = {kind: _names(parameters[kind]) for kind in ("data", "program", "machine")}
    fixed_entries = data.get("fixed")
    fixed = {} if fixed_entries is None else {name: number.number() for name, number in fixed_entries.items()}
    opaque_entries = data.get("opaque")
    opaque = () if opaque_entries is None else _names(opaque_entries)
    listed = [*(name for group in groups.values() for name in group), *opaque]
    if len(set(listed)) != len(listed):
        raise parameters.fault("a name stands for two parameters")
    symbols = {*listed, *fixed}
    derived = []
    for entry in data["derived"].elements():
        name = entry["name"].name()
        if name in symbols:
            raise entry.fault(f"{name} is defined twice")
        derived.append(_read(entry["definition"], partial(definition, name, symbols=symbols)))
        symbols.add(name)
    field_entries = data.get("fields")
    if field_entries is None:
        fields = {symbol: _field(symbol) for symbol in groups["machine"]}
    else:
        fields = {symbol: field.text() for symbol, field in field_entries.items()}
    entries = enumerate(data["leaves"].elements(), 1)
    leaves = tuple(_leaf(entry, number, symbols, groups["program"]) for number, entry in entries)
    complete = data.get("complete")
    return ScheduleDocument(
        name=data["name"].name(),
        function=data["function"].text(),
        line=data["line"].integer(0),
        data=groups["data"],
        program=groups["program"],
        machine=groups["machine"],
        fields=fields,
        derived=tuple(derived),
        start=_system(data["start"], symbols),
        counters=tuple(_counter(entry) for entry in data["counters"].elements()),
        strategies=data["strategies"].texts(),
        root=_tree(data["root"], symbols, len(leaves)),
        leaves=leaves,
        fixed=fixed,
        opaque=opaque,
        complete=complete is None or complete.truth(),
    )


def _names(data: Value) -> tuple[str, ...]:
    return tuple(entry.name() for entry in data.elements())


def _field(symbol: str) -> str:
    """The field of a machine symbol in a document that does not say: the symbol before it was renamed."""
    canonical = {usual: name for name, usual in LIMITS.items()}
    return canonical.get(symbol.rstrip("_"), symbol)


def _counter(data: Value) -> CounterInfo:
    target, better, unit, own = (data.get(key) for key in ("target", "better", "unit", "machine"))
    return CounterInfo(
        name=data["name"].text(),
        kind=data["kind"].one_of("resource", "performance"),
        limit=data["limit"].name(),
        less_is_better=better is None or better.one_of("less", "more") == "less",
        target=None if target is None else Fraction(target.number()),
        unit="" if unit is None else unit.text(),
        own=None if own is None else _own_limit(own),
    )


def _own_limit(data: Value) -> OwnLimit:
    presets = {name: number.integer(0) for name, number in data["presets"].items()}
    try:
        return OwnLimit(data["default"].integer(0), presets)
    except MachineError as error:
        raise data.fault(str(error)) from error


def _tree(data: Value, symbols: set[str], leaves: int) -> Tree:
    """Read a tree from its leaves up, without recursion: a chain of refusals may be long."""
    entered: list[Value] = []
    waiting = [data]
    while waiting:
        entry = waiting.pop()
        entered.append(entry)
        if not entry.has("leaf") and not entry.has("none"):
            waiting += [entry["accept"], entry["refuse"]]
    built: list[Tree] = []
    for entry in reversed(entered):
        if entry.has("leaf"):
            built.append(LeafReference(entry["leaf"].integer(1, leaves)))
        elif entry.has("none"):
            built.append(_end(entry, symbols))
        else:
            # Children were entered after their parent, the refused one first: they are built last, it on top.
            refuse, accept = built.pop(), built.pop()
            built.append(_node(entry, accept, refuse, symbols))
    (root,) = built
    return root


def _end(data: Value, symbols: set[str]) -> Tree:
    reason, system, brief = data["none"].text(), data.get("system"), data.get("brief")
    if reason == INCONSISTENT and system is None:
        return Inconsistent()
    return NoLeaf(reason, () if system is None else _system(system, symbols), "" if brief is None else brief.text())


def _node(data: Value, accept: Tree, refuse: Tree, symbols: set[str]) -> Node:
    strategy = data["strategy"]
    return Node(
        data["counter"].text(),
        _value(data["value"], symbols, data.get("sampled")),
        _read(data["condition"], lambda text: inequality(text, symbols)),
        accept,
        None if strategy.raw is None else strategy.text(),
        refuse,
    )


def _leaf(data: Value, number: int, symbols: set[str], program: Sequence[str]) -> LeafDocument:
    if data["id"].integer(1) != number:
        raise data["id"].fault(f"leaves are numbered in their order: {number} is expected")
    systems = data["systems"]
    if not systems.elements():
        raise systems.fault("a leaf has at least one system")
    variants = data.get("variants")
    witness = data["witness"]
    return LeafDocument(
        number,
        tuple(_system(system, symbols) for system in systems.elements()),
        data["trace"].texts(),
        _older_variants(data, symbols, program) if variants is None else _variants(variants, symbols, program),
        None if witness.raw is None else {name: n.number() for name, n in witness.items()},
    )


def _variants(data: Value, symbols: set[str], program: Sequence[str]) -> tuple[VariantDocument, ...]:
    entries = data.elements()
    variants = tuple(_variant(entry, number, symbols, program) for number, entry in enumerate(entries, 1))
    if not variants or variants[-1].values or variants[-1].limits:
        raise data.fault("the last variant has neither values nor limits")
    return variants


def _variant(data: Value, number: int, symbols: set[str], program: Sequence[str]) -> VariantDocument:
    values = data.get("values")
    return VariantDocument(
        number,
        data["kernel"].name(),
        data["strategies"].texts(),
        _effects(data),
        _counters(data, symbols),
        _system(data["limits"], symbols),
        {} if values is None else _values(values, program),
        data["schedule"].text() if data.has("schedule") else "",
    )


def _older_variants(data: Value, symbols: set[str], program: Sequence[str]) -> tuple[VariantDocument, ...]:
    """Return the variants of a leaf of version 1 or 2: its instances, of which less was said, and its own kernel."""
    variants = []
    instances = data.get("instances")
    for number, entry in enumerate([] if instances is None else instances.elements(), 1):
        values = _values(entry["values"], program)
        counters = _counters(entry, symbols) if entry.has("counters") else {}
        limits = _system(entry["system"], symbols) if entry.has("system") else ()
        variants.append(VariantDocument(number, entry["kernel"].name(), (), (), counters, limits, values))
    own = data["kernel"].name(), data["strategies"].texts(), _effects(data), _counters(data, symbols)
    return (*variants, VariantDocument(len(variants) + 1, *own))


def _effects(data: Value) -> tuple[str, ...] | None:
    effects = data.get("effects")
    return None if effects is None else effects.texts()


def _counters(data: Value, symbols: set[str]) -> dict[str, CounterValue]:
    samples = data.get("sampled")
    return {name: _value(text, symbols, samples and samples.get(name)) for name, text in data["counters"].items()}


def _values(data: Value, program: Sequence[str]) -> dict[str, int]:
    values = {name: static.integer(1) for name, static in data.items()}
    if not values:
        raise data.fault("an instance has at least one value")
    for name in values:
        if name not in program:
            raise data.fault(f"{name[:40]!r} is no program parameter")
    return values


def _system(data: Value, symbols: set[str]) -> tuple[Constraint, ...]:
    return tuple(_read(entry, lambda text: inequality(text, symbols)) for entry in data.elements())


def _value(data: Value, symbols: set[str], sampled: Value | None) -> CounterValue:
    numerator, denominator = _read(data, lambda text: value(text, symbols))
    if not denominator:
        raise data.fault("it divides by zero")
    return CounterValue(numerator, denominator, sampled="" if sampled is None else sampled.text())


def _read(data: Value, reader: Callable[[str], Parsed]) -> Parsed:
    try:
        return reader(data.text())
    except InequalityError as error:
        raise data.fault(str(error)) from error
