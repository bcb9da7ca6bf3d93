"""Structures of scalars: in memory, and to a schedule, rows of them.

``struct point { float x, y, z; } p[n]`` is ``float p[n][3]``, and ``p[i].y`` is ``p[i][1]``: C leaves no room between
members of one type (section 6.7.2.1 of C11, and every ABI that CUDA knows).  A structure of several types is a row for
each of them, at the same place: a member begins at a multiple of its size, and the size of the whole is a multiple of
the size of each member, so that ``struct { int id; double mass; } p[n]`` is ``int p[n][4]`` and ``double p[n][2]``.
Arrays and structures that are members are written out, as members ``v[0]``, ``v[1]`` and ``v.x``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import product

from metafork.frontend.text import syntax
from metafork.frontend.text.counted_braces import number_of
from metafork.frontend.text.vocabulary import scalar_type
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Span
from metafork.ir.program import Slot

COMPLEX = ("__real__", "__imag__")
"""The members of a complex number: words that gcc has for its parts, so that no structure has such members."""

MOST_MEMBERS = 4096
"""Members of a structure, those of its arrays included."""


@dataclass(frozen=True, slots=True)
class StructureType:
    """A structure: what a declaration calls it, its members, and their type; ``fault`` says why no schedule takes it.

    Where members are of several types, ``slots`` are theirs, and ``element`` is the type of the first; ``size`` counts
    bytes.  ``parts`` are the members as they are declared, also of one with a fault.
    """

    name: str
    members: tuple[str, ...] = ()
    element: ScalarType | None = None
    fault: str = ""
    slots: tuple[Slot, ...] = ()
    size: int = 0
    parts: tuple[syntax.MemberName, ...] = field(default=(), compare=False)
    union: bool = False

    @property
    def columns(self) -> int:
        """How many elements of type ``element`` one structure has the room of."""
        return 1 if self.element is None else self.size // self.element.size


@dataclass(eq=False)
class TypeNames(dict[str, ScalarType]):
    """The names of scalar types; ``structures`` are those of structures, tags with ``struct`` in front of them.

    ``conditional`` are names of types that are declared under a condition which is not decided, ``arrays`` those of
    arrays, with their types: no schedule can use either.  ``pointers`` are names of pointers to scalars and structures.
    """

    structures: dict[str, StructureType] = field(default_factory=dict)
    conditional: set[str] = field(default_factory=set)
    arrays: dict[str, syntax.TypeName] = field(default_factory=dict)
    pointers: dict[str, syntax.TypeName] = field(default_factory=dict)

    def copy(self) -> TypeNames:
        """Return the same names, to which others may be added."""
        other = TypeNames(dict(self.structures), set(self.conditional), dict(self.arrays), dict(self.pointers))
        other.update(self)
        return other


def structure_of(type_: syntax.TypeName, names: TypeNames) -> StructureType | None:
    """Return the structure that specifiers name, a complex number among them; ``None`` for any other type."""
    if (number := complex_type(type_.words)) is not None:
        return number
    if type_.structure is None:
        return names.structures.get(type_.words[0]) if len(type_.words) == 1 else None
    return _named(type_.structure, names)


def complex_type(words: tuple[str, ...]) -> StructureType | None:
    """Return the structure that ``float complex`` and ``double complex`` are, ``None`` for any other type."""
    numbers = [word for word in words if word not in ("complex", "_Complex")]
    if len(numbers) == len(words) or numbers not in (["float"], ["double"], []):
        return None
    element = ScalarType.FLOAT if numbers == ["float"] else ScalarType.DOUBLE
    return StructureType(f"{element.spelling} _Complex", COMPLEX, element, size=2 * element.size)


def note_structure(type_: syntax.TypeName, names: TypeNames) -> None:
    """Note the tag of a structure that a declaration defines."""
    if type_.structure is not None and type_.structure.members is not None and type_.structure.tag:
        enter_structure(f"struct {type_.structure.tag}", _defined(type_.structure, names), names)


def enter_structure(name: str, structure: StructureType, names: TypeNames) -> None:
    """Give a structure a name; of one that has several definitions it is not asked which is meant where."""
    if names.structures.get(name, structure) != structure:
        structure = StructureType(name, fault="it has several definitions")
    names.structures[name] = structure


def union_members(structure: StructureType, names: TypeNames) -> dict[str, ScalarType] | None:
    """Return the members of a union of numbers that are of one size, ``None`` for any other type."""
    found: dict[str, ScalarType] = {}
    for member in structure.parts if structure.union else ():
        scalar = scalar_type(member.words, names)
        if member.what or member.extents or member.structure is not None or scalar is None:
            return None
        found[member.name] = scalar
    return found if len({one.size for one in found.values()}) == 1 else None


def single_members(
    structure: StructureType, names: TypeNames, before: str = ""
) -> Iterator[tuple[str, syntax.TypeName]]:
    """Yield the members that are scalars, pointers to scalars, or tables of these: paths and types.

    Those of structures in it too.
    """
    for member in structure.parts:
        path = f"{before}{member.name}"
        named = names.pointers.get(member.words[0]) if len(member.words) == 1 and not member.extents else None
        if member.pointed is not None or (named is not None and not member.what):
            type_ = member.pointed or named
            assert type_ is not None
            led_to = structure_of(type_, names)
            known = not led_to.fault if led_to is not None else scalar_type(type_.words, names) is not None
            table = type_.pointers == 2 and led_to is None and not type_.rows
            if (type_.pointers == 1 or table) and not type_.function and known:
                yield path, type_
        elif not member.what and not member.extents:
            inner = names.structures.get(member.words[0]) if len(member.words) == 1 else None
            if member.structure is not None:
                inner = _named(member.structure, names)
            if inner is not None:
                yield from single_members(inner, names, f"{path}.")
            elif scalar_type(member.words, names) is not None:
                nothing: frozenset[str] = frozenset()
                yield path, syntax.TypeName(member.words, nothing, nothing, (), 0, False, Span(1, 1, 1, 1, 0, 0))


def _named(structure: syntax.StructureName, names: TypeNames) -> StructureType | None:
    if structure.members is None:
        return names.structures.get(f"struct {structure.tag}")
    return _defined(structure, names)


class _FaultError(Exception):
    """A member that no schedule takes; the message says what it is."""


def _defined(structure: syntax.StructureName, names: TypeNames) -> StructureType:
    name = f"struct {structure.tag}" if structure.tag else ""
    if structure.union:
        return StructureType(name, fault="it is a union", parts=structure.members or (), union=True)
    members: list[str] = []
    slots: list[Slot] = []
    end, widest = 0, 1
    try:
        for member in structure.members or ():
            alignment, parts, size = _parts(member, names)
            end = -(-end // alignment) * alignment
            for suffix, slot in parts:
                members.append(member.name + suffix)
                slots.append(Slot(slot.type, end + slot.offset))
            end += size
            widest = max(widest, alignment)
            if len(members) > MOST_MEMBERS:
                raise _FaultError(f"it has more than {MOST_MEMBERS} members")
    except _FaultError as fault:
        return StructureType(name, fault=str(fault), parts=structure.members or ())
    if not slots:
        return StructureType(name, fault="its members are not understood")
    size = -(-end // widest) * widest
    one_type = all(slot.type is slots[0].type for slot in slots)
    own = () if one_type else tuple(slots)
    return StructureType(name, tuple(members), slots[0].type, "", own, size, structure.members or ())


def _parts(member: syntax.MemberName, names: TypeNames) -> tuple[int, list[tuple[str, Slot]], int]:
    """Return the alignment of a member, its scalars with what their names add to its own, and its size."""
    inner = names.structures.get(member.words[0]) if len(member.words) == 1 else complex_type(member.words)
    if member.structure is not None:
        inner = _named(member.structure, names)
    scalar = scalar_type(member.words, names) if inner is None and member.structure is None else None
    if member.what or (scalar is None and (inner is None or inner.fault)):
        of_type = f"of type `{' '.join(member.words)}`" if member.words else "a structure that is not understood"
        raise _FaultError(f"its member `{member.name}` is {member.what or of_type}")
    if inner is None:
        assert scalar is not None
        alignment, own, size = scalar.size, [("", Slot(scalar, 0))], scalar.size
    else:
        assert inner.element is not None
        slots = inner.slots or [Slot(inner.element, place * inner.element.size) for place in range(len(inner.members))]
        alignment, size = max(slot.type.size for slot in slots), inner.size
        own = [(f".{name}", slot) for name, slot in zip(inner.members, slots, strict=True)]
    extents = [None if extent is None else number_of(extent, partial(_size_of, names)) for extent in member.extents]
    known = [extent for extent in extents if extent]
    if len(known) < len(extents):
        raise _FaultError(f"its member `{member.name}` is an array whose extents are no numbers")
    parts: list[tuple[str, Slot]] = []
    for at, places in enumerate(_places(known)):
        if len(parts) > MOST_MEMBERS:
            raise _FaultError(f"it has more than {MOST_MEMBERS} members")
        parts += [(places + suffix, Slot(slot.type, at * size + slot.offset)) for suffix, slot in own]
    return alignment, parts, len(parts) // len(own) * size


def _size_of(names: TypeNames, type_: syntax.TypeName) -> int | None:
    """Return the bytes of a type that an extent asks for."""
    if type_.pointers:
        return 8
    structure = structure_of(type_, names)
    scalar = None if structure is not None else scalar_type(type_.words, names)
    size = structure.size if structure is not None else 0 if scalar is None else scalar.size
    for extent in type_.extents:
        size *= 0 if extent is None else number_of(extent, partial(_size_of, names)) or 0
    return size or None


def _places(extents: list[int]) -> Iterator[str]:
    for place in product(*map(range, extents)):
        yield "".join(f"[{index}]" for index in place)
