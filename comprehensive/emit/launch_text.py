"""C text that launches the leaves of one schedule: ``NAME_launch`` on device pointers, and the drop-in's entry.

For each kernel a function has ``metafork_prepare`` compute its arguments and its shape by tables
(``metafork.comprehensive.emit.launch_tables``), and does what the target says to check the shape against the device and
to launch.
``metafork_run_NAME`` computes the sizes of the arrays and the trip counts, and hands all to ``metafork_dispatch``
(``metafork/dispatch.h``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from metafork.analysis.extents.host_walk import host_walk
from metafork.comprehensive.emit.checked_expressions import ComputationError, checked, within_type
from metafork.comprehensive.emit.effects import Effect
from metafork.comprehensive.emit.identifiers import c_string
from metafork.comprehensive.emit.launch_tables import LaunchTables
from metafork.comprehensive.emit.leaf_code import LeafCode
from metafork.comprehensive.emit.select_text import SelectText, derived_definitions, target_names
from metafork.comprehensive.emit.signature import Signature, touched_arrays
from metafork.comprehensive.emit.targets.target import Attempt, Handles, Target, handles_of
from metafork.comprehensive.tree.schedule_tree import ScheduleTree
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import Space
from metafork.ir.program import Derived, IntConst, Phase, Program, Var, walk_expression, walk_statements

_OTHERS = ("metafork_d", "metafork_go", "metafork_s", "metafork_stream")
"""What ``METAFORK_CALL`` has beside the inputs."""
_MAX_ARRAYS = 64
_MAX_SHARED = 64
"""Computed numbers of one table; what leaves after that need has its own."""


def launch_text(
    tree: ScheduleTree,
    signature: Signature,
    codes: Sequence[Sequence[LeafCode]],
    chosen: SelectText,
    target: Target,
) -> str:
    """Return the definitions that launch the leaves of one schedule, of which one is ``chosen``.

    Raises ``ComputationError`` where the host cannot compute what a launch needs.
    """
    if len(signature.moved) > _MAX_ARRAYS:
        raise ComputationError(f"more than {_MAX_ARRAYS} arrays in one schedule")
    names = ", ".join(map(c_string, signature.parameters)) or '""'
    lines = [*inputs_type(signature), ""]
    if tree.leaves:
        lines += [f"static const char *const {signature.name}_names[] = {{{names}}}; /* of parameters */", ""]
    several = False
    shared: list[tuple[LaunchTables, list[str]]] = []
    for leaf, of_variants in zip(tree.leaves, codes, strict=True):
        attempts: list[tuple[str, str]] = []
        if not shared or shared[-1][0].tables.size > len(signature.parameters) + _MAX_SHARED:
            shared.append((LaunchTables.of(signature, leaf.id), []))
        tables, own = shared[-1]
        for variant, code in zip(leaf.variants, of_variants, strict=True):
            name = f"{signature.name}_attempt{leaf.id}_{variant.number}"
            if code.compiled is not None:
                own += ["", *_attempt(signature, leaf.id, f"{name}_jit", code.compiled, target, tables, {})]
                attempts.append((f"metafork_s->compiled && metafork_s->variant == {variant.number}", f"{name}_jit"))
            own += ["", *_attempt(signature, leaf.id, name, code, target, tables, variant.values)]
            attempts.append((f"metafork_s->variant == {variant.number}", name))
        several = several or len(attempts) > 1
        own += ["", *_attempt_variants(signature, leaf.id, attempts)]
    for tables, own in shared:
        lines += [*tables.lines(), *own, ""]
    lines += [*_attempt_any(tree, signature), ""]
    lines += [*_run(tree, signature, chosen), ""]
    lines += _launch(tree, signature, chosen.values if several else None)
    handles = handles_of(target)
    if handles is not None:
        lines += ["", *_typed_launch(signature, handles)]
    return "\n".join(lines) + "\n"


def launch_declaration(signature: Signature, *, variant: bool = False) -> str:
    """Return the declarator of ``NAME_launch``, or of ``NAME_launch_variant``."""
    places = [f"int {signature.leaf}", *([f"int {signature.variant}"] if variant else [])]
    declarations = [*places, f"void *{signature.stream}", *_inputs(signature)]
    return f"{signature.name}_launch{'_variant' if variant else ''}({', '.join(declarations)})"


def typed_declaration(signature: Signature, handles: Handles) -> str:
    """Return the declarator of the launch that takes handles of a library."""
    memories = [f"{handles.memory}{array}" for array in signature.arrays.values()]
    inputs = [*signature.integers(), *signature.value_declarations(), *memories]
    declarations = [f"int {signature.leaf}", f"{handles.queue}{signature.stream}", *inputs]
    return f"{signature.name}_launch_{handles.suffix}({', '.join(declarations)})"


def run_types(signature: Signature) -> str:
    """Return the parameter types of ``metafork_run_NAME``, which the host file declares and calls."""
    types = ["void *const *"] + ["long long"] * len(signature.parameters)
    types += [declaration.rsplit(" ", 1)[0] for declaration in signature.value_declarations()]
    if host_walk(signature.program) is not None:
        types.append("const long long *")
    return ", ".join(types)


def _inputs(signature: Signature) -> list[str]:
    return [*signature.integers(), *signature.value_declarations(), *signature.pointer_declarations()]


def _attempt_variants(signature: Signature, leaf: int, attempts: Sequence[tuple[str, str]]) -> list[str]:
    """Return the function that checks or launches the variant of a leaf that is asked for, its own one by default.

    ``attempts`` are the conditions and the functions of its kernels, the last one its own.
    """
    *others, (_, own) = attempts
    return [
        f"static int {signature.name}_attempt{leaf}(METAFORK_CALL)",
        "{",
        *(f"    if ({test}) return {name}(METAFORK_GIVEN);" for test, name in others),
        f"    return {own}(METAFORK_GIVEN);",
        "}",
    ]


def _attempt(
    signature: Signature,
    leaf: int,
    function: str,
    code: LeafCode,
    target: Target,
    tables: LaunchTables,
    compiled_for: Mapping[str, int],
) -> list[str]:
    """Return the function that checks one kernel of a leaf (``metafork_go`` false) or launches it, behind its tables.

    One that is ``compiled_for`` some values of parameters takes no others.
    """
    kernel = code.kernel
    table = function.replace("_attempt", "_kernel")
    rows = tables.kernel(table, kernel, compiled_for)
    integers = [one.name for one in kernel.scalars if one.name not in signature.values]
    arguments: list[str] = []
    values: list[str] = []
    for scalar in kernel.scalars:
        if scalar.name in integers:
            arguments.append(f"metafork_a[{integers.index(scalar.name)}]")
        elif scalar.type is ScalarType.BOOL:  # an `int` of the call
            values.append(f"const bool metafork_a_{scalar.name} = metafork_i->{signature.values[scalar.name]} != 0;")
            arguments.append(f"metafork_a_{scalar.name}")
        else:
            arguments.append(f"metafork_i->{signature.values[scalar.name]}")
    places = {array.name: place for place, array in enumerate(signature.moved)}
    arrays = (signature.program.array(one.name) for one in kernel.memories if one.space is Space.GLOBAL)
    arguments += [f"metafork_d[{places[array.whole or array.name]}]" for array in arrays]
    inputs = f"const {signature.name}_inputs *"
    if any("metafork_i->" in one for one in (*arguments, *values)):
        values.insert(0, f"{inputs}const metafork_i = ({inputs})metafork_inputs;")
    statics = tuple(
        f"((const int64_t *)metafork_inputs)[{list(signature.parameters).index(one)}]" for one in code.statics
    )
    trace = (f"    METAFORK_TRACE({signature.name}, {leaf}, {len(signature.parameters)});",)
    return [
        *rows,
        f"static int {function}(METAFORK_CALL)",
        "{",
        f"    int64_t metafork_a[{max(len(integers), 1)}];",
        *(f"    {line}" for line in values),
        f"    METAFORK_PREPARE({table});",
        *target.launching(Attempt(code, tuple(arguments), trace, statics)),
        "}",
    ]


def _definitions(derived: Sequence[Derived], known: dict[str, str]) -> list[str]:
    lines = []
    for definition in derived:
        local = f"metafork_h_{definition.name}"
        text = within_type(checked(definition.definition, known), definition.type)
        lines.append(f"const int64_t {local} = {text};")
        known[definition.name] = local
    return lines


def inputs_type(signature: Signature) -> list[str]:
    """Return the type of the parameters and values of a call."""
    fields = [f"{declaration};" for declaration in [*signature.integers(), *signature.value_declarations()]]
    name = f"{signature.name}_inputs"
    return [f"typedef struct {name} {{", *(f"    {one}" for one in fields or ["char metafork_none;"]), f"}} {name};"]


def _attempt_any(tree: ScheduleTree, signature: Signature) -> list[str]:
    """Return the attempt at any leaf."""
    rest = "bool metafork_go, metafork_shape *metafork_s, void *metafork_stream, void *const *metafork_d"
    return [
        f"static int {signature.name}_attempt(const void *metafork_inputs, int metafork_leaf, {rest})",
        "{",
        *([] if tree.leaves else [f"    (void){', (void)'.join(['metafork_inputs', *_OTHERS])};"]),
        "    switch (metafork_leaf) {",
        *(f"    case {leaf.id}: return {signature.name}_attempt{leaf.id}(METAFORK_GIVEN);" for leaf in tree.leaves),
        "    default: return METAFORK_EINVAL;",
        "    }",
        "}",
    ]


def _launch(tree: ScheduleTree, signature: Signature, values: int | None) -> list[str]:
    """Return ``NAME_launch`` and ``NAME_launch_variant``.

    ``values`` is the length of the vector of values where a leaf has several kernels.
    """
    name = signature.name
    pointers = ", ".join(f"(void *){array}" for array in signature.arrays.values()) or "NULL"
    lines = [
        f"int {launch_declaration(signature)}",
        "{",
        f"    {_inputs_variable(signature)}",
        f"    void *const metafork_d[] = {{{pointers}}};",
    ]
    integers = len(signature.parameters)
    lines.append("    static __thread metafork_recent metafork_last;")
    lines.append(f"    static __thread int64_t metafork_numbers[{max(integers, 1)}];")
    if values is not None:
        lines.append(f"    int64_t metafork_v[{values}] = {{0}};")
    how = f"{name}_chosen, metafork_v" if values is not None else "NULL, NULL"
    given = f"&metafork_i, {signature.leaf}, {signature.stream}, metafork_d"
    last = f"&metafork_last, metafork_numbers, {integers}"
    call = f"metafork_launch_leaf(&{name}_schedule, {how}, {name}_attempt, {given}, {last})"
    return [*lines, f"    return {call};", "}", "", *_launch_variant(tree, signature, pointers)]


def _launch_variant(tree: ScheduleTree, signature: Signature, pointers: str) -> list[str]:
    name, leaf, variant = signature.name, signature.leaf, signature.variant
    return [
        f"int {launch_declaration(signature, variant=True)}",
        "{",
        f"    {_inputs_variable(signature)}",
        f"    void *const metafork_d[] = {{{pointers}}};",
        "    metafork_shape metafork_s = METAFORK_NONE;",
        f"    if ({leaf} < 1 || {leaf} > {len(tree.leaves)}) return METAFORK_EINVAL;",
        f"    if ({variant} < 1 || {variant} > {name}_leaves[{leaf} - 1].variant_count) return METAFORK_EINVAL;",
        f"    metafork_s.variant = {variant};",
        f"    return {name}_attempt(&metafork_i, {leaf}, true, &metafork_s, {signature.stream}, metafork_d);",
        "}",
    ]


def _typed_launch(signature: Signature, handles: Handles) -> list[str]:
    memories = [f"({signature.pointer_type(array)}){signature.arrays[array.name]}" for array in signature.moved]
    scalars = [*signature.parameters.values(), *signature.values.values()]
    arguments = [signature.leaf, f"(void *){signature.stream}", *scalars, *memories]
    return [
        f"int {typed_declaration(signature, handles)}",
        "{",
        f"    return {signature.name}_launch({', '.join(arguments)});",
        "}",
    ]


def _inputs_variable(signature: Signature) -> str:
    return f"const {signature.name}_inputs metafork_i = {{{', '.join(signature.scalar_names.values()) or '0'}}};"


def _run(tree: ScheduleTree, signature: Signature, select: SelectText) -> list[str]:
    """Return the entry of the drop-in and the schedule's description."""
    name, program = signature.name, tree.program
    count = len(signature.moved)
    uses = [_use(array.name, select.effects[array.name]) for array in signature.moved] or [_use("", Effect())]
    regions = f"{name}_regions" if select.regions else "NULL"
    targets = target_names(tree)
    known = dict(signature.scalar_names)
    wanted = {
        p.name for array in program.arrays for e in array.extents for p in walk_expression(e) if isinstance(p, Var)
    }
    sizes = _definitions(derived_definitions(program.derived, wanted), known)
    touched = touched_arrays(program)
    for index, array in enumerate(signature.moved):
        if array.name not in touched:
            continue  # nothing to move
        if array.endless:
            sizes.append(f"metafork_bytes[{index}] = METAFORK_ENDLESS;")
            continue
        text = str(array.element.size)
        for extent in array.extents:
            text = f"METAFORK_MUL({text}, METAFORK_WITHIN({checked(extent, known)}, 0, INT64_MAX))"
        sizes.append(f"metafork_bytes[{index}] = {text};")
    chosen = ", ".join(
        ["metafork_m", *(f"metafork_i->{field}" for field in signature.parameters.values()), "metafork_v"]
    )
    declarations = [
        "void *const *metafork_arrays",
        *signature.integers("long long"),
        *signature.value_declarations(),
    ]
    walked = host_walk(program) is not None
    declarations += ["const long long *metafork_reach"] if walked else []
    return [
        f"static const metafork_use {name}_uses[] = {{{', '.join(uses)}}};",
        f"static const char *const {name}_targets[] = {{{', '.join(map(c_string, targets or ['']))}}};",
        f"static int {name}_said;",
        f"static const metafork_schedule {name}_schedule = {{",
        f"    {c_string(name)}, {name}_leaves, {len(tree.leaves)}, {name}_start, {len(tree.start)},",
        f"    {name}_uses, {count}, {name}_targets, {len(targets)}, &{name}_said,",
        f"    {regions}, {select.regions}, {select.doubt}}};",
        "",
        f"static int {name}_chosen(const void *metafork_inputs, const metafork_machine *metafork_m, "
        "int64_t *metafork_v)",
        "{",
        f"    const {name}_inputs *const metafork_i = (const {name}_inputs *)metafork_inputs;",
        *([] if signature.parameters else ["    (void)metafork_i;"]),
        f"    return {name}_choose({chosen});",
        "}",
        "",
        "/* Runs the schedule on host arrays, or returns 0: then the host function runs the serial code. */",
        f"METAFORK_C int metafork_run_{name}({', '.join(declarations)});",
        f"int metafork_run_{name}({', '.join(declarations)})",
        "{",
        "    int metafork_failed = 0;",
        f"    int64_t metafork_bytes[{max(count, 1)}] = {{0}}, metafork_v[{select.values}] = {{0}};",
        "    bool metafork_empty = false, metafork_nothing = false, metafork_blocks = true;",
        f"    {_inputs_variable(signature)}",
        *_empty(program, signature),
        *(f"    {line}" for line in sizes),
        f"    return metafork_dispatch(&{name}_schedule, metafork_arrays, metafork_bytes, "
        f"{'metafork_reach' if walked else 'NULL'}, metafork_failed != 0,",
        f"        metafork_empty, metafork_nothing && metafork_blocks, metafork_v, &metafork_i, {name}_chosen, "
        f"{name}_attempt);",
        "}",
    ]


def _use(name: str, effect: Effect) -> str:
    flags = (effect.written, effect.exact, effect.overwritten, effect.later, effect.compared)
    return f"{{{', '.join([c_string(name), *(str(flag).lower() for flag in flags)])}}}"


def _empty(program: Program, signature: Signature) -> list[str]:
    """Return the test for a trip count less than 1; extents that the host cannot compute are left to the launch.

    Where it is one of the grid and computed in signed numbers, which do not wrap around, the serial code does nothing;
    unless a block has no threads: loops over elements may have been cut into blocks by a shape that is none.
    """
    inner = [loop for stmt in walk_statements(program.body) if isinstance(stmt, Phase) for loop in stmt.threads]
    threads = {loop.extent for loop in inner}
    signed_grid = {loop.extent for loop in program.grid if loop.type.signed}
    lines: list[str] = []
    for extent in dict.fromkeys(loop.extent for loop in (*program.grid, *inner)):
        known = dict(signature.scalar_names)
        wanted = {part.name for part in walk_expression(extent) if isinstance(part, Var)}
        through = derived_definitions(program.derived, wanted)
        try:
            definitions = _definitions(through, known)
            text = checked(extent, known)
        except ComputationError:
            if extent in threads:
                lines.append("    metafork_blocks = false;")
            continue
        parts = [part for one in (extent, *(one.definition for one in through)) for part in walk_expression(one)]
        signed = extent in signed_grid and not any(part.type.integer and not part.type.signed for part in parts)
        shaped = extent in threads and not (isinstance(extent, IntConst) and extent.value >= 1)
        # The flag is a local one: a trip count that cannot be computed is not an empty nest.
        lines += [
            "    {",
            "        int metafork_failed = 0;",
            *(f"        {line}" for line in definitions),
            f"        METAFORK_EXTENT({text}, {str(signed).lower()}, {str(shaped).lower()});",
            "    }",
        ]
    return lines
