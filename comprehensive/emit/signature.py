"""The C interface of one schedule: names, parameter lists and which arrays it reads and writes (DESIGN section 7).

Integer parameters come in declaration order with the variables of enclosing serial loops last, then value arguments
and arrays in declaration order.  ``select`` takes the integers alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from metafork.comprehensive.emit.identifiers import safe_identifiers
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType


class Signature(Struct, frozen=True):
    """The interface of one schedule.

    ``parameters``, ``values`` and ``arrays`` map names of the input to identifiers of the generated text; ``machine``,
    ``leaf`` and ``stream`` are the names of the interface's own parameters, chosen so that they clash with none.
    ``moved`` are the arrays as the host has them, each once, by the names that ``arrays`` has.
    """

    program: ir.Program
    parameters: Mapping[str, str]
    values: Mapping[str, str]
    arrays: Mapping[str, str]
    machine: str
    leaf: str
    variant: str
    stream: str
    written: frozenset[str]
    moved: tuple[ir.Array, ...]

    @property
    def name(self) -> str:
        """The name of the schedule: the prefix of its functions."""
        return self.program.name

    @property
    def scalar_names(self) -> dict[str, str]:
        """C text of every scalar of the input that the functions take."""
        return {**self.parameters, **self.values}

    def integers(self, type_: str = "int64_t") -> list[str]:
        """Return the declarations of the integer parameters."""
        return [f"{type_} {name}" for name in self.parameters.values()]

    def value_declarations(self) -> list[str]:
        """Return the declarations of the value arguments."""
        return [
            f"{value_type(value.type)} {self.values[value.name]}"
            for value in self.program.values
            if value.name in self.values
        ]

    def pointer_declarations(self) -> list[str]:
        """Return the declarations of the device pointers."""
        return [f"{self.pointer_type(array)}{self.arrays[array.name]}" for array in self.moved]

    def pointer_type(self, array: ir.Array) -> str:
        """Return ``const float *`` for an array that is only read, ``float *`` for others, ``void *`` for views."""
        element = "void" if array.slots else element_type(array.element)
        return f"{'' if array.name in self.written else 'const '}{element} *"

    def pointer(self, name: str) -> str:
        """Return the device pointer to an array of the program, which is that of the whole for a view."""
        return self.arrays[self.program.array(name).whole or name]


def element_type(type_: ScalarType) -> str:
    """Return the spelling of an element type in C and C++ alike."""
    return "unsigned char" if type_ is ScalarType.BOOL else type_.stored.spelling


def value_type(type_: ScalarType) -> str:
    """Return the spelling of a value argument's type in C and C++ alike."""
    return "int" if type_ is ScalarType.BOOL else type_.spelling


def signature_of(program: ir.Program) -> Signature:
    """Return the interface of a schedule's program."""
    parameters = [p.name for p in program.parameters if not p.of_serial_loop]
    parameters += [p.name for p in program.parameters if p.of_serial_loop]
    scalars = safe_identifiers([*parameters, *(value.name for value in program.values)])
    moved = host_arrays(program)
    arrays = safe_identifiers([f"d_{array.name}" for array in moved], scalars.values())
    taken = {*scalars.values(), *arrays.values()}
    own = safe_identifiers(["m", "leaf", "variant", "stream"], taken)
    return Signature(
        program=program,
        parameters={name: scalars[name] for name in parameters},
        values={value.name: scalars[value.name] for value in program.values},
        arrays={array.name: arrays[f"d_{array.name}"] for array in moved},
        machine=own["m"],
        leaf=own["leaf"],
        variant=own["variant"],
        stream=own["stream"],
        written=_with_wholes(program, written_arrays(program)),
        moved=moved,
    )


def host_arrays(program: ir.Program) -> tuple[ir.Array, ...]:
    """Return the arrays of a program as the host has them: one for all views of an array of structures."""
    found: dict[str, ir.Array] = {}
    for array in program.arrays:
        whole = replace(array, name=array.whole, slots=(ir.Slot(array.element, 0),)) if array.whole else array
        found.setdefault(whole.name, whole)
    return tuple(found.values())


def _with_wholes(program: ir.Program, names: frozenset[str]) -> frozenset[str]:
    """Return names of arrays, and of those that they are views of."""
    return names | {array.whole for array in program.arrays if array.whole and array.name in names}


def written_arrays(program: ir.Program) -> frozenset[str]:
    """Return the names of the arrays that some statement of the program assigns to."""
    return frozenset(
        stmt.target.array
        for stmt in ir.walk_statements(program.body)
        if isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Element)
    )


def touched_arrays(program: ir.Program) -> frozenset[str]:
    """Return the names of the arrays that the program reads or writes, and of those that they are views of."""
    named = frozenset(part.array for part in ir.parts_of(program.body) if isinstance(part, ir.Element))
    return _with_wholes(program, named)
