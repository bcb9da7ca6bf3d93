"""Structures whose members are scalars of one type: in memory, and to a schedule, rows of such scalars.

``struct point { float x, y, z; } p[n]`` is ``float p[n][3]``, and ``p[i].y`` is ``p[i][1]``: C leaves no room between
members of one type (section 6.7.2.1 of C11, and every ABI that CUDA knows).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from metafork.frontend.text import syntax
from metafork.frontend.text.vocabulary import scalar_type
from metafork.ir.arithmetic.types import ScalarType


@dataclass(frozen=True, slots=True)
class StructureType:
    """A structure: what a declaration calls it, its members, and their type; ``fault`` says why it has no such type."""

    name: str
    members: tuple[str, ...] = ()
    element: ScalarType | None = None
    fault: str = ""


@dataclass(eq=False)
class TypeNames(dict[str, ScalarType]):
    """The names of scalar types; ``structures`` are those of structures, tags with ``struct`` in front of them."""

    structures: dict[str, StructureType] = field(default_factory=dict)

    def copy(self) -> TypeNames:
        """Return the same names, to which others may be added."""
        other = TypeNames(dict(self.structures))
        other.update(self)
        return other


def structure_of(type_: syntax.TypeName, names: TypeNames) -> StructureType | None:
    """Return the structure that specifiers name, ``None`` for any other type."""
    if type_.structure is None:
        return names.structures.get(type_.words[0]) if len(type_.words) == 1 else None
    if type_.structure.members is None:
        return names.structures.get(f"struct {type_.structure.tag}")
    return _defined(type_.structure, names)


def note_structure(type_: syntax.TypeName, names: TypeNames) -> None:
    """Note the tag of a structure that a declaration defines."""
    if type_.structure is not None and type_.structure.members is not None and type_.structure.tag:
        enter_structure(f"struct {type_.structure.tag}", _defined(type_.structure, names), names)


def enter_structure(name: str, structure: StructureType, names: TypeNames) -> None:
    """Give a structure a name; of one that has several definitions it is not asked which is meant where."""
    if names.structures.get(name, structure) != structure:
        structure = StructureType(name, fault="it has several definitions")
    names.structures[name] = structure


def _defined(structure: syntax.StructureName, names: TypeNames) -> StructureType:
    members = structure.members or ()
    name = f"struct {structure.tag}" if structure.tag else ""
    types: list[ScalarType] = []
    for member in members:
        scalar = scalar_type(member.words, names) if not member.what else None
        if scalar is None or scalar is ScalarType.BOOL:
            what = member.what or f"of type `{' '.join(member.words)}`"
            return StructureType(name, fault=f"its member `{member.name}` is {what}")
        types.append(scalar)
    if not types:
        return StructureType(name, fault="its members are not understood")
    other = next((member for member, type_ in zip(members, types, strict=True) if type_ is not types[0]), None)
    if other is not None:
        return StructureType(name, fault=f"`{members[0].name}` and `{other.name}` have different types")
    return StructureType(name, tuple(member.name for member in members), types[0])
