"""C text that chooses a leaf: the vector of values, Start, the walk of the tree, and the limits of variants.

``NAME_choose`` fills the vector and returns the leaf, 0 for none, -1 outside of Start and -2 where a derived value does
not fit; ``NAME_select`` and the drop-in both use it.  Machine parameters come from ``metafork_machine``, derived
symbols are computed in the tree's order, opaque derived scalars by their C expressions in checked arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import Constraint, Polynomial, at_most, equal
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.overwriting import Region
from metafork.comprehensive.emit.checked_expressions import checked, int64_constant, within_type
from metafork.comprehensive.emit.condition_tables import ConditionTables, TabulationError
from metafork.comprehensive.emit.effects import Effect, Effects
from metafork.comprehensive.emit.identifiers import c_comment, c_string
from metafork.comprehensive.emit.leaf_code import LeafCode
from metafork.comprehensive.emit.signature import Signature
from metafork.comprehensive.systems.signs import integral
from metafork.comprehensive.tree.document import document_of
from metafork.comprehensive.tree.schedule_tree import (
    CounterInfo,
    Inconsistent,
    Leaf,
    LeafReference,
    Node,
    NoLeaf,
    ScheduleTree,
    Tree,
    Variant,
)
from metafork.evaluators.counter import Measure
from metafork.ir.program import Derived, Var, walk_expression
from metafork.runtime.machine import FIELDS, SYMBOLS, OwnLimit

_MEASURES = {
    None: "METAFORK_ESTIMATED",
    Measure.REGISTERS_PER_THREAD: "METAFORK_REGISTERS_PER_THREAD",
    Measure.REGISTERS_PER_BLOCK: "METAFORK_REGISTERS_PER_BLOCK",
}


_NO_CONDITION = "{{NULL, 0}, METAFORK_AT_MOST, {NULL, 0}, NULL}"


class SelectText(Struct, frozen=True):
    """The text, how many values the vector has, the ``effects`` and the number of ``regions`` in it.

    These are not known where the value at the place ``doubt``, if there is one, is not 0.
    """

    text: str
    values: int
    effects: Effects
    regions: int
    doubt: int


def select_text(
    tree: ScheduleTree, signature: Signature, codes: Sequence[Sequence[LeafCode]], effects: Effects
) -> SelectText:
    """Return the definitions that choose a leaf of one schedule, and a variant of it.

    Raises ``TabulationError`` or ``ComputationError`` where a condition is outside of what the runtime evaluates.
    """
    name = signature.name
    order = document_of(tree).order
    tables = ConditionTables(name, order)
    for parameter in signature.parameters:
        tables.add_slot(parameter)
    given = [f"metafork_v[{tables.slots[p]}] = {text};" for p, text in signature.parameters.items()]
    given += _machine_values(tree, tables)
    depends = tables.size
    fill = _opaque_values(tree, signature, tables)
    derived = [_derived_row(symbol, tables) for symbol in tree.derived]

    start = [tables.condition(constraint) for constraint in tree.start]
    conditions: dict[str, int] = {}
    nodes: dict[tuple[int, int, int], int] = {}
    root = _nodes(tree.root, tables, conditions, nodes)
    variants = _Variants(name, tree, tables)
    leaves = [variants.leaf(leaf, own) for leaf, own in zip(tree.leaves, codes, strict=True)]
    regions = _regions(signature, effects, tables)
    if tables.base_slot is not None:
        fill.insert(0, f"metafork_v[{tables.base_slot}] = INT64_C(1) << 62;")

    lines = ["/* The polynomials of the conditions: {coefficient, degree, {places in the vector of values}}. */"]
    lines += tables.lines()
    lines += regions.text
    lines += _table(f"static const metafork_condition {name}_start[]", start, _NO_CONDITION)
    lines += _table(f"static const metafork_condition {name}_conditions[]", list(conditions), _NO_CONDITION)
    rows = [f"{{{row}, {accept}, {refuse}}}" for row, accept, refuse in nodes]
    lines.append("/* The tree: {condition, where it holds, where not}; a leaf, 0 for none, -1 - i for node i. */")
    lines += _table(f"static const metafork_node {name}_nodes[]", rows, "{0, 0, 0}")
    lines += variants.lines
    lines += _table(f"static const metafork_leaf {name}_leaves[]", leaves, "{NULL, 0}")
    parts = []
    for what, made in (("derived", derived), ("later", regions.later)):
        lines += _table(f"static const metafork_derived {name}_{what}[]", made, "") if made else []
        parts += [f"{name}_{what}" if made else "NULL", str(len(made))]
    parts += [f"{name}_start", str(len(start)), f"{name}_nodes", f"{name}_conditions", str(root), str(regions.doubt)]
    lines.append(f"static const metafork_tree {name}_tree = {{{', '.join(parts)}}};")
    integers = ", ".join([*signature.integers(), "int64_t *metafork_v"])
    computed = f"{name}_compute({', '.join([*signature.parameters.values(), 'metafork_v'])})"
    leaf = computed if fill else f"metafork_leaf_of(&{name}_tree, metafork_v, 0)"
    arguments = ", ".join([*signature.parameters.values(), "metafork_v"])
    size = max(tables.size, 1)
    lines += [
        "",
        *_computing(signature, integers, fill),
        "/* The leaf that the tree gives, 0: none, -1: outside of Start, -2: a derived value does not fit.  A thread",
        f" * remembers what it computed last from the first {depends} values. */",
        f"static int {name}_choose(const metafork_machine *metafork_m, {integers})",
        "{",
        "    static __thread struct {",
        "        bool known;",
        "        int leaf;",
        f"        int64_t values[{size}];",
        "    } metafork_last;",
        *([] if any("metafork_m" in one for one in given) else ["    (void)metafork_m;"]),
        *(f"    {line}" for line in given),
        "    if (!metafork_last.known ||",
        f"        memcmp(metafork_last.values, metafork_v, {depends} * sizeof *metafork_v) != 0) {{",
        f"        metafork_last.leaf = {leaf};",
        "        memcpy(metafork_last.values, metafork_v, sizeof metafork_last.values);",
        "        metafork_last.known = true;",
        "    } else {",
        "        memcpy(metafork_v, metafork_last.values, sizeof metafork_last.values);",
        "    }",
        "    return metafork_last.leaf;",
        "}",
        "",
        f"int {select_declaration(signature)}",
        "{",
        f"    int64_t metafork_v[{size}] = {{0}};",
        f"    if ({signature.machine} == NULL) return METAFORK_EINVAL;",
        f"    const int metafork_chosen = {name}_choose({signature.machine}, {arguments});",
        "    return metafork_chosen < 0 ? 0 : metafork_chosen;",
        "}",
        "",
        f"int {variant_declaration(signature)}",
        "{",
        f"    int64_t metafork_v[{size}] = {{0}};",
        f"    if ({signature.machine} == NULL || {signature.leaf} < 1 || {signature.leaf} > {len(tree.leaves)}) "
        "return METAFORK_EINVAL;",
        f"    if ({name}_choose({signature.machine}, {arguments}) < 0) return 0;",
        f"    return metafork_estimated_variant(&{name}_leaves[{signature.leaf} - 1], metafork_v);",
        "}",
        "",
        f"const char *{name}_leaf_system(int {signature.leaf})",
        "{",
        f"    switch ({signature.leaf}) {{",
        *(f"    case {leaf.id}: return {c_string(system_text(leaf, order))};" for leaf in tree.leaves),
        "    default: return NULL;",
        "    }",
        "}",
    ]
    return SelectText("\n".join(lines) + "\n", size, regions.effects, len(regions.rows), regions.doubt)


def _computing(signature: Signature, integers: str, fill: Sequence[str]) -> list[str]:
    """Return the function that computes what no table does before the tree is asked; nothing where there is no such."""
    if not fill:
        return []
    return [
        f"static int {signature.name}_compute({integers})",
        "{",
        "    int metafork_failed = 0;",
        *(f"    (void){one};" for one in signature.parameters.values()),
        *(f"    {line}" for line in fill),
        f"    return metafork_leaf_of(&{signature.name}_tree, metafork_v, metafork_failed);",
        "}",
        "",
    ]


class _Regions(Struct):
    """The lines of tables of regions, the rows of the last one, and what is known of the arrays with them.

    ``later`` are the values that they need; where one cannot be computed, that at the place ``doubt`` says so.
    """

    text: list[str]
    rows: list[str]
    effects: dict[str, Effect]
    later: list[str]
    doubt: int = -1


def _regions(signature: Signature, effects: Effects, tables: ConditionTables) -> _Regions:
    """Return what is surely overwritten, with the comment that says so; what has no table is not known."""
    found = _Regions([], [], dict(effects), [])
    derived = dict.fromkeys(symbol for effect in effects.values() for symbol in effect.derived)
    wanted = {
        name
        for effect in effects.values()
        for one in effect.regions
        for part in one.polynomials
        for name in part.symbols
    }
    for symbol in reversed(derived):
        if symbol.name in wanted:
            wanted |= {name for operand in symbol.operands for name in operand.symbols}
    for symbol in derived:
        if symbol.name in wanted and symbol.name not in tables.slots:
            found.later.append(_derived_row(symbol, tables))
    if found.later:
        found.doubt = tables.add_slot("regions are in doubt")
    for place, array in enumerate(signature.moved):
        for region in effects[array.name].regions:
            try:
                row = _region(f"{signature.name}_region{len(found.rows)}", region, tables, found.text)
            except TabulationError:
                found.effects[array.name] = replace(found.effects[array.name], exact=False, compared=True)
                continue
            found.rows.append(f"{{{place}, {array.element.size}, {row}}}")
    if found.rows:
        found.text += _table(f"static const metafork_region {signature.name}_regions[]", found.rows, "")
    return found


def _region(name: str, region: Region, tables: ConditionTables, lines: list[str]) -> str:
    """Return the row of a region but for its array; ``lines`` are those of its tables."""
    rows: list[str] = []
    every: list[str] = []
    for span in region.spans:
        parts = [tables.polynomials((span.step,))[0][0]]
        for bounds in (span.least, span.behind):
            parts += [f"{name}_bounds + {len(every)}" if bounds else "NULL", str(len(bounds))]
            every += [tables.polynomials((one,))[0][0] for one in bounds]
        rows.append(f"{{{', '.join(parts)}}}")
    first = tables.polynomials((region.first,))[0][0]
    if every:
        lines.append(f"static const metafork_polynomial {name}_bounds[] = {{{', '.join(every)}}};")
    if rows:
        lines.append(f"static const metafork_span {name}_spans[] = {{{', '.join(rows)}}};")
    return f"{first}, {f'{name}_spans' if rows else 'NULL'}, {len(rows)}"


def select_declaration(signature: Signature) -> str:
    """Return the declarator of ``NAME_select``."""
    machine = f"const metafork_machine *{signature.machine}"
    return f"{signature.name}_select({', '.join([machine, *signature.integers()])})"


def variant_declaration(signature: Signature) -> str:
    """Return the declarator of ``NAME_variant``."""
    machine = f"const metafork_machine *{signature.machine}"
    return f"{signature.name}_variant({', '.join([machine, f'int {signature.leaf}', *signature.integers()])})"


def system_text(leaf: Leaf, order: tuple[str, ...]) -> str:
    """Return a leaf's systems as one condition: ``(a <= b && c < d) || (...)``; ``1`` where nothing is asked."""
    systems = [" && ".join(constraint.text(order) for constraint in system) for system in leaf.systems]
    if not systems or not all(systems):
        return "1"
    return systems[0] if len(systems) == 1 else " || ".join(f"({system})" for system in systems)


def _table(declaration: str, rows: list[str], none: str) -> list[str]:
    """Return a table; C has no empty arrays, so an empty one gets a row that nobody reads."""
    return [f"{declaration} = {{", *(f"    {row}," for row in rows or [none]), "};"]


def _machine_values(tree: ScheduleTree, tables: ConditionTables) -> list[str]:
    lines = []
    fields = {symbol: field for field, symbol in SYMBOLS.items()}
    targets = {counter.limit: counter for counter in tree.counters if counter.kind == "performance"}
    own = {counter.limit: counter.own for counter in tree.counters if counter.own is not None}
    for key, symbol in tree.machine.items():
        if symbol in tree.fixed:
            continue
        field = fields.get(key, key)
        if field in FIELDS:
            lines.append(f"metafork_v[{tables.add_slot(symbol)}] = metafork_m->{field}; /* {symbol} */")
        elif symbol in own:
            lines.append(_own_limit(symbol, key, own[symbol], tables))
        elif symbol in targets:
            lines += _target_values(targets[symbol], key, tables)
        else:
            raise TabulationError(f"{key} is no field of a machine and no target of a performance counter")
    return lines


def _own_limit(symbol: str, key: str, limit: OwnLimit, tables: ConditionTables) -> str:
    rows = ", ".join(f"{{{capability}, {number}}}" for capability, number in limit.by_capability().items())
    table, count = f"{tables.prefix}_presets_{len(tables.more)}", len(limit.presets)
    tables.more.append(f"static const metafork_preset {table}[] = {{{rows or '{0, 0}'}}};")
    value = f"metafork_own_limit(metafork_m, {c_string(key)}, {table}, {count}, {int64_constant(limit.default)})"
    return f"metafork_v[{tables.add_slot(symbol)}] = {value}; /* {symbol} */"


def _target_values(counter: CounterInfo, key: str, tables: ConditionTables) -> list[str]:
    numerator, denominator = tables.add_target(counter.limit)
    target = counter.target if counter.target is not None else Fraction(0)
    finds = [
        f"metafork_find_target(metafork_m, {c_string(name)}, &metafork_v[{numerator}], &metafork_v[{denominator}]);"
        for name in dict.fromkeys((counter.name, key))
    ]
    return [
        f"metafork_v[{numerator}] = {target.numerator}; /* {counter.limit}, the target of {counter.name} */",
        f"metafork_v[{denominator}] = {target.denominator};",
        *finds,
    ]


def target_names(tree: ScheduleTree) -> list[str]:
    """Return the names by which ``METAFORK_MACHINE`` may give a target, or a limit that is no field, of this tree."""
    names: dict[str, None] = {}
    for counter in tree.counters:
        if counter.kind == "performance":
            names[counter.name] = None
        if counter.kind == "performance" or counter.own is not None:
            names.update({key: None for key, symbol in tree.machine.items() if symbol == counter.limit})
    return list(names)


def derived_definitions(derived: tuple[Derived, ...], wanted: set[str]) -> list[Derived]:
    """Return the derived scalars that ``wanted`` ones need, themselves included, in order."""
    needed = set(wanted)
    for definition in reversed(derived):
        if definition.name in needed:
            needed |= {part.name for part in walk_expression(definition.definition) if isinstance(part, Var)}
    return [definition for definition in derived if definition.name in needed]


def _opaque_values(tree: ScheduleTree, signature: Signature, tables: ConditionTables) -> list[str]:
    lines: list[str] = []
    known = dict(signature.scalar_names)
    for definition in derived_definitions(tree.program.derived, set(tree.opaque)):
        local = f"metafork_d_{definition.name}"
        text = within_type(checked(definition.definition, known), definition.type)
        lines.append(f"const int64_t {local} = {text};")
        known[definition.name] = local
    for name in tree.opaque:
        if name not in known:
            raise TabulationError(f"{name} is opaque, but no derived scalar of the program")
        lines.append(f"metafork_v[{tables.add_slot(name)}] = {known[name]};")
    return lines


_KINDS = {
    "floor": "METAFORK_FLOOR",
    "ceiling": "METAFORK_CEILING",
    "minimum": "METAFORK_LEAST",
    "maximum": "METAFORK_GREATEST",
}


def _derived_row(symbol: DerivedSymbol, tables: ConditionTables) -> str:
    """Return the row of a derived symbol, which gets a place behind those of its operands."""
    extremum = symbol.kind in ("minimum", "maximum")
    if extremum and any(operand.symbols & tables.denominators.keys() for operand in symbol.operands):
        raise TabulationError(f"{symbol.name} is an extremum over a performance target")
    operands, factor = tables.polynomials(symbol.operands)
    table = f"{tables.prefix}_operands{len(tables.more)}"
    comment = c_comment(f"{symbol.name} = {symbol.definition(tables.order)}")
    tables.more.append(f"static const metafork_polynomial {table}[] = {{{', '.join(operands)}}}; /* {comment} */")
    parts = [str(tables.add_slot(symbol.name)), _KINDS[symbol.kind], table, str(len(operands))]
    return f"{{{', '.join(parts)}, {factor if extremum else 1}}}"


def _nodes(
    tree: Tree, tables: ConditionTables, conditions: dict[str, int], nodes: dict[tuple[int, int, int], int]
) -> int:
    """Enter the nodes below a tree, equal ones once, and return its place.

    A place is a leaf's number, 0 for none, or -1 - i for the i-th node; a node is (condition, accept, refuse).
    """
    match tree:
        case LeafReference(leaf=leaf):
            return leaf
        case NoLeaf() | Inconsistent():
            return 0
        case Node(condition=condition, accept=accept, refuse=refuse):
            row = conditions.setdefault(tables.condition(condition), len(conditions))
            node = (row, _nodes(accept, tables, conditions, nodes), _nodes(refuse, tables, conditions, nodes))
            return -1 - nodes.setdefault(node, len(nodes))
        case _:
            assert_never(tree)


class _Variants:
    """The tables of the variants of leaves; equal ones are there once."""

    def __init__(self, name: str, tree: ScheduleTree, tables: ConditionTables) -> None:
        self._name, self._tree, self._tables = name, tree, tables
        self._known: dict[tuple[str, ...], str] = {}
        self.lines: list[str] = []

    def leaf(self, leaf: Leaf, codes: Sequence[LeafCode]) -> str:
        """Return the row of a leaf."""
        rows = [self._variant(one, code) for one, code in zip(leaf.variants, codes, strict=True)]
        table = f"{self._name}_variants{leaf.id}"
        self.lines += _table(f"static const metafork_variant {table}[]", rows, "")
        return f"{{{table}, {len(rows)}}}"

    def _variant(self, variant: Variant, code: LeafCode) -> str:
        values = (equal(Polynomial.symbol(name), Polynomial.constant(n)) for name, n in variant.values.items())
        counted = _limits(self._tree, variant)
        # What a counter says is asked once, and with what the compiler used where that is known.
        needs = (one for one in variant.limits if one not in {integral(limit) for _, limit in counted})
        conditions = tuple(map(self._tables.condition, (*values, *needs)))
        parts = [self._named("condition", conditions), str(len(conditions))]
        limits = tuple(
            f"{{{c_string(counter.name)}, {self._tables.condition(limit)}, {_MEASURES[counter.measure]}}}"
            for counter, limit in counted
            if counter.measure is not None or not _always(limit)
        )
        parts += [self._named("limit", limits), str(len(limits))]
        return f"{{{', '.join([*parts, str(code.compiled is not None).lower()])}}}"

    def _named(self, what: str, rows: tuple[str, ...]) -> str:
        """Return the name of a table of ``metafork_condition`` or ``metafork_limit``."""
        if not rows:
            return "NULL"
        if rows not in self._known:
            self._known[rows] = f"{self._name}_{what}s{len(self._known)}"
            self.lines += _table(f"static const metafork_{what} {self._known[rows]}[]", list(rows), "")
        return self._known[rows]


def _always(limit: Constraint) -> bool:
    """Say whether a value within its limit is so at sight: two numbers, or nothing within what is never negative."""
    return not limit.left or (not limit.symbols and limit.holds({}))


def _limits(tree: ScheduleTree, variant: Variant) -> list[tuple[CounterInfo, Constraint]]:
    """Return the ``value <= limit`` of each resource counter of a variant."""
    found = []
    for counter in tree.counters:
        value = variant.counters.get(counter.name)
        if counter.kind != "resource" or value is None:
            continue
        if counter.limit in tree.fixed:
            limit = Polynomial.constant(tree.fixed[counter.limit])
        else:
            limit = Polynomial.symbol(counter.limit)
        found.append((counter, at_most(value.numerator, limit * value.denominator)))
    return found
