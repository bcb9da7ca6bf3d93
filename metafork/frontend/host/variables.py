"""Variables of the host: what they are declared as, where they are written, and what may change them."""

from __future__ import annotations

import math

from msgspec import Struct, field
from msgspec.structs import replace

from metafork.frontend.text import syntax
from metafork.frontend.text.other_languages.advice import Advice
from metafork.frontend.text.structures import COMPLEX, StructureType, TypeNames, enter_structure, structure_of
from metafork.frontend.text.vocabulary import scalar_type
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Span


class Variable(Struct, eq=False):
    """A variable of the host.

    ``type`` is set for scalars, ``element`` and ``extents`` for arrays with extents; ``fault`` is the code of the
    diagnostic for any other variable, with its ``message``, ``reason`` and ``way_out`` of its own, and ``at`` where it
    is mended, if that is not where it is used; ``pointed`` is the type of what a pointer, or an array without its first
    extent, leads to, single elements or ``rows`` of these extents.  An array of structures has an extent more, their
    members, and ``structure`` says which.  ``since`` is the place from which it has its declared extents, ``escapes``
    the place where its address is given away, after which every call may write it.  ``initial`` is the value of a
    ``const`` scalar of the file, ``braces`` are those of a ``const`` array.  ``given`` is the variable that says of a
    pointer whether it is not null.  Of a table of pointers, ``row`` is the type of what they lead to, and ``row_count``
    their number where it is declared; rows that are packed are those of the ``table`` of that name.  The extent of an
    array is ``followed`` where its accesses are to say it, or the size of the ``memory`` that a pointer was given.
    """

    name: str
    span: Span
    since: int
    type: ScalarType | None = None
    element: ScalarType | None = None
    extents: tuple[syntax.Expression, ...] = ()
    pointed: ScalarType | None = None
    rows: tuple[syntax.Expression, ...] = ()
    structure: StructureType | None = None
    const: bool = False
    fault: str = ""
    message: str = ""
    reason: str | None = None
    way_out: str | None = None
    at: Span | None = None
    is_global: bool = False
    is_parameter: bool = False
    is_file: bool = False
    escapes: float = math.inf
    scope: dict[str, Variable] = field(default_factory=dict)
    writes: list[Write] = field(default_factory=list)
    initial: syntax.Expression | None = None
    braces: syntax.Braces | None = None
    given: Variable | None = None
    row: ScalarType | None = None
    row_count: syntax.Expression | None = None
    table: str = ""
    followed: bool = False
    memory: syntax.Expression | None = None


def advise(variable: Variable, code: str, at: Span, advice: Advice) -> None:
    """Make a variable unusable for what another language has; the place is in its declaration."""
    variable.fault, variable.message, variable.at = code, advice.message, at
    variable.reason, variable.way_out = advice.reason, advice.help


class Stretch(Struct, eq=False):
    """The places that a loop or a block covers, from ``first`` to ``last``."""

    first: int
    last: int = 0

    def covers(self, order: int) -> bool:
        """Return whether a place lies in it."""
        return self.first <= order <= self.last


class Write(Struct, frozen=True):
    """A write to a variable: where, the expression where it is a plain one, the block that it stands directly in.

    It is ``supposed`` where only the tokens of a text that is not understood suggest it.
    """

    span: Span
    order: int
    value: syntax.Expression | None
    block: Stretch | None
    scope: dict[str, Variable]
    supposed: bool = False


class Change(Struct, frozen=True):
    """What may change a variable: a write or a call that is seen, or something that is not known."""

    span: Span
    unknown: bool
    write: Write | None = None


class Assertion(Struct, frozen=True):
    """An ``assert`` of the host, or a condition under which a statement stands."""

    condition: syntax.Expression
    order: int
    block: Stretch | None
    scope: dict[str, Variable]


class Row(Struct, frozen=True):
    """A row of a table of pointers, by a name of its own; without a number, all of them, packed."""

    name: str
    table: str
    number: int | None

    @property
    def text(self) -> str:
        """What C calls it."""
        return self.table if self.number is None else f"{self.table}[{self.number}]"


class Site(Struct, frozen=True):
    """A schedule with what surrounds it: visible variables and the loops around it, outermost first.

    The host hands it pointers that are ``led`` to rows of its tables.
    """

    statement: syntax.ScheduleStatement
    visible: dict[str, Variable]
    loops: tuple[syntax.ForStatement | syntax.WhileStatement, ...]
    order: int
    led: tuple[Row, ...] = ()


def declared(declarator: syntax.Declarator, typedefs: TypeNames, since: int) -> Variable:
    """Return the variable that a declarator declares."""
    type_ = spelled_out(declarator.type, typedefs)
    name = declarator.name
    variable = Variable(name, declarator.name_span, since, const="const" in type_.qualifiers)
    variable.is_file = type_.words == ("FILE",)
    scalar = scalar_type(type_.words, typedefs)
    structure = structure_of(type_, typedefs)
    members: tuple[syntax.Expression, ...] = ()
    if structure is not None and (type_.extents or type_.pointers) and not type_.function:
        variable.structure, scalar = (None if structure.fault else structure), structure.element
        members = (columns_of(structure, declarator.name_span),)
    first, *inner = type_.extents or (None,)
    rows = tuple(one for one in inner if one is not None) or type_.rows
    stars = 0 if type_.extents else 1 + len(rows)
    if first is None and len(rows) == len(inner or rows) and type_.pointers == stars and not type_.function:
        plain = not type_.qualifiers & {"volatile", "_Atomic"}
        variable.pointed, variable.rows = scalar if plain else None, rows
    if type_.pointers + len(type_.extents) == 2 and type_.pointers and not type_.rows and not type_.function:
        small = scalar is not None and scalar.small
        variable.row = None if small or type_.qualifiers & {"volatile", "_Atomic"} else scalar
        variable.row_count = first
    if type_.function:
        variable.fault, variable.message = "MF0206", f"`{name}` is a function"
    elif scalar is None and " ".join(type_.words) in typedefs.conditional:
        _with_unknown_type(variable, type_, typedefs)
    elif type_.pointers:
        variable.fault, variable.message = "MF0201", f"`{name}` is a pointer"
        _of_no_elements(variable, type_, scalar)
    elif type_.words == ("struct",) and (structure is None or not type_.extents):
        variable.fault, variable.message = "MF0205", f"`{name}` is a structure, union or enumeration"
    elif structure is not None and (structure.fault or not type_.extents):
        why = f": {structure.fault}" if structure.fault else ""
        variable.fault, variable.message = "MF0205", f"`{name}` is a structure{why}"
        _of_one_complex_number(variable, structure)
    elif scalar is None:
        _with_unknown_type(variable, type_, typedefs)
    elif "volatile" in type_.qualifiers or "_Atomic" in type_.qualifiers:
        variable.fault, variable.message = "MF0217", f"`{name}` is volatile or atomic"
    elif not type_.extents and scalar.small:
        variable.fault, variable.message = "MF0216", f"`{name}` is a single number of type `{scalar.spelling}`"
        variable.reason = f"kernels take arrays of `{scalar.spelling}`, and compute in `float`."
        variable.way_out = f"give the schedule a `float`: `float {name}`."
    elif not type_.extents:
        variable.type = scalar
    elif any(extent is None for extent in type_.extents):
        variable.fault, variable.message = "MF0208", f"the array `{name}` has no extent"
    else:
        variable.element = scalar
        variable.extents = (*(extent for extent in type_.extents if extent is not None), *members)
    return variable


def _of_one_complex_number(variable: Variable, structure: StructureType) -> None:
    if structure.members == COMPLEX and structure.element is not None:
        name, type_ = variable.name, structure.element.spelling
        end = "f" if structure.element is ScalarType.FLOAT else ""
        variable.message = f"`{name}` is a single complex number"
        variable.reason = "kernels take single numbers that are real, and arrays of complex ones."
        variable.way_out = (
            f"read its parts in front of the schedule, `{type_} re = creal{end}({name}), im = cimag{end}({name});`, "
            f"and write `CMPLX{end.upper()}(re, im)` for it."
        )


def _of_no_elements(variable: Variable, type_: syntax.TypeName, scalar: ScalarType | None) -> None:
    """Say of a pointer why it leads to nothing that a schedule takes."""
    if len(type_.extents) > 1:
        variable.message = f"`{variable.name}` is a table of pointers with several dimensions"
        variable.reason = "a table of pointers has one dimension."
        variable.way_out = "use a table for each number of the outer dimension, or one array for all elements."
    elif scalar is None and type_.words in _OTHER_NUMBERS:
        words = " ".join(type_.words)
        variable.message = f"`{variable.name}` leads to numbers of type `{words}`, which no schedule can use"
        variable.reason = "the GPU has `float` and `double`."
        variable.way_out = f"use `double *{variable.name}`."


_OTHER_NUMBERS = {("long", "double"), ("double", "long"), ("__float128",), ("_Float128",)}


def without_size(variable: Variable) -> None:
    """Say of an array of the file without its first extent where to write it."""
    spelling = "float" if variable.pointed is None else variable.pointed.spelling
    name, inner = variable.name, "".join(f"[{_shown(one)}]" for one in variable.rows)
    variable.at = variable.span
    variable.message = f"it is not known how many elements `{name}` has"
    variable.reason = f"`{name}` is copied to the GPU, so its size must be known."
    variable.way_out = (
        f"write the size into the declaration, such as `{spelling} {name}[1000]{inner}`, or make it a parameter of the "
        f"function: `{spelling} {name}[n]{inner}`."
    )


def spelled_out(type_: syntax.TypeName, typedefs: TypeNames) -> syntax.TypeName:
    """Return a type in which the name of a pointer or an array is written out; ``const`` is said of a pointer there."""
    array = typedefs.arrays.get(type_.words[0]) if len(type_.words) == 1 and type_.structure is None else None
    if array is not None and not type_.rows and not type_.function:
        known = replace(type_, words=array.words, structure=array.structure)
        inner = tuple(one for one in array.extents if one is not None)
        if not type_.pointers:
            return replace(known, extents=(*type_.extents, *array.extents))
        if type_.pointers == 1 and not type_.extents and len(inner) == len(array.extents):
            return replace(known, rows=inner, pointers=1 + len(inner))
        return type_
    pointer = typedefs.pointers.get(type_.words[0]) if len(type_.words) == 1 and type_.structure is None else None
    if pointer is None:
        return type_
    qualifiers = pointer.qualifiers | (type_.qualifiers - {"const"})
    stars = type_.pointers + pointer.pointers
    return replace(type_, words=pointer.words, structure=pointer.structure, qualifiers=qualifiers, pointers=stars)


def _with_unknown_type(variable: Variable, named: syntax.TypeName, typedefs: TypeNames) -> None:
    """Say why no schedule can use a variable of a type that is neither a scalar nor a structure."""
    type_ = " ".join(named.words)
    variable.fault = "MF0315"
    variable.message = f"`{variable.name}` has type `{type_}`, which no schedule can use"
    if type_ in typedefs.conditional:
        variable.message = f"`{variable.name}` has type `{type_}`, which is declared under a condition"
        variable.reason, variable.way_out = OF_CONDITIONAL_TYPES
    elif type_ not in typedefs:
        from metafork.frontend.text.other_languages.types import foreign_type  # most files have none

        extents = "".join(f"[{_shown(one)}]" for one in named.extents)
        advice = foreign_type(named.words, f"{'*' * named.pointers}{variable.name}{extents}")
        if advice is not None:
            advise(variable, "MF0216", named.span, advice)


OF_CONDITIONAL_TYPES = (
    "kernels are made for one type, whatever the file is compiled with.",
    "declare the type unconditionally; for two types, have two files.",
)
"""Why a type that is declared under a condition is refused, and a way out."""


def _shown(extent: syntax.Expression | None) -> str:
    match extent:
        case syntax.Constant(text=text) | syntax.Name(name=text):
            return text
        case _:
            return "" if extent is None else "..."


def columns_of(structure: StructureType, span: Span) -> syntax.Expression:
    """Return the extent that the members of a structure in memory are."""
    return syntax.Constant(str(structure.columns), span)


def rank_of(variable: Variable) -> int:
    """Return how many indices an element of an array has for C, to which a structure is one element."""
    return len(variable.extents) - (variable.structure is not None and bool(variable.extents))


def key_of(extent: syntax.Expression, array: Variable) -> list[object]:
    """Return what tells an expression from others, wherever it stands."""
    found: list[object] = []
    for node in syntax.walk(extent):
        found.append(type(node))
        match node:
            case syntax.Name(name=name):
                found.append(id(array.scope.get(name)))
            case syntax.Constant(text=text):
                found.append(text)
            case syntax.Infix(op=op) | syntax.Prefix(op=op) | syntax.Postfix(op=op):
                found.append(op)
            case syntax.Ternary() | syntax.Comma() | syntax.Subscript():
                pass
            case _:
                found.append(object())  # a type, a call: never taken to be equal
    return found


def declare_under_condition(variable: Variable, other: Variable | None) -> None:
    """Make a variable unusable that stands under an undecided ``#if`` where its name may mean another one as well."""
    if other is not None and (variable.type is None or variable.type is not other.type):
        variable.type, variable.element, variable.extents = None, None, ()
        variable.fault, variable.message = "MF0008", f"`{variable.name}` is declared under a condition"


def define_type(declarator: syntax.Declarator, typedefs: TypeNames, certain: bool = True) -> None:
    """Note a ``typedef`` where it names a scalar or a structure; one under an undecided ``#if`` is not known."""
    name, type_ = declarator.name, declarator.type
    scalar = scalar_type(type_.words, typedefs)
    structure = structure_of(type_, typedefs)
    if structure is not None and not type_.pointers and not type_.extents and not type_.function:
        enter_structure(name, structure, typedefs)
    elif name in typedefs.structures:
        enter_structure(name, StructureType(name, fault="it names another type too"), typedefs)
    usable = scalar is not None and not type_.pointers and not type_.extents and not type_.function
    typedefs.conditional.discard(name)
    typedefs.arrays.pop(name, None)
    typedefs.pointers.pop(name, None)
    if certain and type_.pointers == 1 and not type_.extents and not type_.function and not type_.rows:
        typedefs.pointers[name] = type_
    if scalar is not None and usable and (certain or typedefs.get(name, scalar) is scalar):
        typedefs[name] = scalar
        return
    typedefs.pop(name, None)
    if not certain:
        typedefs.conditional.add(name)
    elif type_.extents and not type_.pointers and not type_.function:
        typedefs.arrays[name] = type_
