"""``metafork.load``: the functions of a MetaFork file, called from Python with arrays of NumPy or of a GPU.

    smooth = metafork.load("smooth.mf").smooth
    smooth(s=4, B=256, x=x, y=y)             # n is said by the shape of x

What is given is checked before anything runs: types, shapes against the declared extents, memory that C can walk.
Parameters that extents of arrays determine may be left out.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from metafork.comprehensive.building.compilers import has_gpu
from metafork.comprehensive.building.device_arrays import OnDevice, borrowed, handle_of, on_device
from metafork.comprehensive.building.library import cached
from metafork.comprehensive.building.structured import Layout
from metafork.comprehensive.optimize import source_of
from metafork.comprehensive.options import machine_values
from metafork.comprehensive.reading import parse
from metafork.comprehensive.tree import render
from metafork.comprehensive.tree.document import ScheduleDocument, TreeDocument
from metafork.comprehensive.tree.selection import Selection, select, told, without_unasked
from metafork.comprehensive.tree.tree_fields import parsed
from metafork.comprehensive.tree.tree_reading import from_json
from metafork.frontend.text.structures import COMPLEX
from metafork.ir.arithmetic.evaluation import NoValueError, integer_value
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Source
from metafork.ir.program import ENDLESS, Array, Expr, Slot
from metafork.ir.rewriting import variables
from metafork.ir.translation_unit import Function, FunctionParameter, TranslationUnit

C_TYPES: Mapping[ScalarType, Any] = {
    ScalarType.BOOL: ctypes.c_bool,
    ScalarType.CHAR: ctypes.c_byte,
    ScalarType.SIGNED_CHAR: ctypes.c_byte,
    ScalarType.UNSIGNED_CHAR: ctypes.c_ubyte,
    ScalarType.SHORT: ctypes.c_short,
    ScalarType.UNSIGNED_SHORT: ctypes.c_ushort,
    ScalarType.INT: ctypes.c_int,
    ScalarType.UNSIGNED_INT: ctypes.c_uint,
    ScalarType.LONG: ctypes.c_long,
    ScalarType.UNSIGNED_LONG: ctypes.c_ulong,
    ScalarType.LONG_LONG: ctypes.c_longlong,
    ScalarType.UNSIGNED_LONG_LONG: ctypes.c_ulonglong,
    ScalarType.FLOAT: ctypes.c_float,
    ScalarType.DOUBLE: ctypes.c_double,
}
NUMPY_TYPES: Mapping[ScalarType, Any] = {
    **C_TYPES,
    ScalarType.HALF: np.float16,
    ScalarType.BFLOAT16: np.uint16,  # NumPy has none: its bits
}
_RETURNED = {"void": None, "bool": ctypes.c_bool, **{one.spelling: c_type for one, c_type in C_TYPES.items()}}
ndarray, byref, from_buffer = np.ndarray, ctypes.byref, ctypes.c_char.from_buffer
CPU_MACHINE = "sm_80"
"""What the CPU build takes itself for."""


def load(path_or_text: str | PathLike[str] | Source, *, cpu: bool | None = None, **options: Any) -> Loaded:
    """Return the functions of a MetaFork file, or of a text, compiled for this machine.

    nvcc compiles for the GPU where there is one; else, or where ``cpu`` is true, kernels run on the processor.
    ``options`` are those of ``metafork.optimize``.  What was built is kept in the user's cache.  Raises what
    ``metafork.optimize`` raises, ``BuildError`` where a compiler fails or is missing, and ``OSError``.
    """
    source = source_of(path_or_text)
    unit = parse(source, reassociate=bool(options.get("reassociate")))
    cpu = not has_gpu() if cpu is None else cpu
    library, tree = cached(source, unit.headers, cpu, {"static": "auto", **options})
    return Loaded(unit, from_json(parsed(tree)), library, cpu=cpu)


class Loaded:
    """A compiled file: its functions are attributes; a notebook shows its tree."""

    def __init__(self, unit: TranslationUnit, document: TreeDocument, library: Path, *, cpu: bool) -> None:
        self.library = library
        self.document = document
        self._code = ctypes.CDLL(str(library))
        self._functions = {
            function.name: LoadedFunction(function, self._code, document, cpu=cpu)
            for function in unit.functions
            if not function.static and function.name != "main"
        }

    def __getattr__(self, name: str) -> LoadedFunction:
        """Return a function of the file."""
        if name.startswith("_") or name not in self._functions:
            known = ", ".join(self._functions) or "none"
            raise AttributeError(f"{self.document.source} has no function {name!r}; there are {known}")
        return self._functions[name]

    def __dir__(self) -> list[str]:
        """List the functions."""
        return [*super().__dir__(), *self._functions]

    def __repr__(self) -> str:
        """Say which file it is, and what it has."""
        return f"<metafork {self.document.source}: {', '.join(self._functions)}>"

    def _repr_svg_(self) -> str | None:
        """Show the trees in a notebook, where there is Graphviz."""
        try:
            return render.svg(render.dot(self.document))
        except (render.NoGraphvizError, render.TooLargeError):
            return None


class Choice(dict[str, Selection]):
    """Which leaf each schedule of a call takes, by its name; as text, with the reasons."""

    def __init__(self, schedules: Sequence[ScheduleDocument], selections: Mapping[str, Selection]) -> None:
        super().__init__(selections)
        self._lines = [line for one in schedules for line in told(one, selections[one.name])]

    def __str__(self) -> str:
        """Return what ``metafork select`` prints."""
        return "\n".join(self._lines)


class Repeated(Struct, frozen=True):
    """A call that was checked; another one of its form only has to agree with it.

    ``arguments`` are those of the function, in order.  ``checks`` has for each value that was given its place there,
    and what it must be: an array's dtype and shape; or, of a number, its Python type, the least and the greatest.
    """

    arguments: list[Any]
    checks: list[tuple[int, Any, Any, Any]]

    def agreeing(self, values: Iterable[Any]) -> list[Any] | None:
        """Return the arguments of a call with these values, ``None`` where they must be checked."""
        arguments = self.arguments.copy()
        for value, (place, type_, least, greatest) in zip(values, self.checks, strict=True):
            if type(value) is not type_:
                return None
            if type_ is ndarray:
                if value.shape != greatest or (value.dtype is not least and value.dtype != least):
                    return None
                try:
                    value = byref(from_buffer(value))
                except (BufferError, TypeError, ValueError):
                    return None  # it is read-only, or not contiguous
            elif type_ is int and not least <= value <= greatest:
                return None
            arguments[place] = value
        return arguments


class LoadedFunction:
    """A function of a file, on arrays of the host or of the GPU.

    Raises ``TypeError`` and ``ValueError`` that name the argument, before anything runs.
    """

    def __init__(self, function: Function, code: ctypes.CDLL, document: TreeDocument, *, cpu: bool) -> None:
        self.__name__ = function.name
        self._code = code
        self._cpu = cpu
        self._parameters = tuple(map(_as_array, function.parameters))
        self._names = tuple(one.name for one in function.parameters)
        self._schedules = [one for one in document.schedules if one.function == function.name]
        self._arrays = [(place, one) for place, one in enumerate(self._parameters) if one.array is not None]
        self._endless = [place for place, one in self._arrays if one.array is not None and one.array.endless]
        self._tell = code.metafork_extent
        self._scalars = [one for one in function.parameters if one.type is not None]
        self._dtypes = {one.name: _dtype(one) for _, one in self._arrays}
        self._layouts = {one.name: _layout(one) for _, one in self._arrays if one.members}
        self._checked: dict[tuple[object, ...], Repeated] = {}
        extents = [extent for _, one in self._arrays if one.array is not None for extent in one.array.extents]
        self._sizes = {name for extent in extents for name in variables(extent)}
        self._optional = self._sizes & {one.name for one in self._scalars}
        self.__doc__ = f"{function.name}({', '.join(map(_declared, function.parameters))})"
        self._refusal = _refusal(function, self._parameters)
        if not self._refusal:
            self._call = code[function.name]
            self._call.argtypes = [
                ctypes.c_void_p if one.type is None else C_TYPES[one.type] for one in function.parameters
            ]
            self._call.restype = _RETURNED[_returned(function)]

    def __repr__(self) -> str:
        return f"<metafork {self.__doc__}>"

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Call the function; arrays are changed in place.

        With arrays of the GPU, kernels are begun on ``stream``: the number of a CUDA stream, or an object that has it.
        """
        if self._refusal:
            raise TypeError(f"{self.__name__} cannot be called from Python: {self._refusal}")
        form = (len(given), *named)
        before = self._checked.get(form)
        if before is not None:
            agreeing = before.agreeing((*given, *named.values()))
            if agreeing is not None:
                return self._call(*agreeing)
        stream = None if "stream" in self._names else named.pop("stream", None)
        handle = None if stream is None else handle_of(stream)
        arguments = self._arguments(given, named, handle)
        self._check_shapes(arguments)
        lent = {one.name: arguments[place] for place, one in self._arrays if type(arguments[place]) is OnDevice}
        if not lent and stream is not None:
            raise TypeError(f"{self.__name__}: a stream is for arrays of the GPU, and there is none")
        if lent:
            with borrowed(self._code, self.__name__, lent, handle) as addresses:
                return self._called(arguments, addresses)
        if not self._endless:
            self._checked[form] = self._repeated(arguments, len(given), named)
        return self._called(arguments, {})

    def _called(self, arguments: list[Any], addresses: Mapping[str, int]) -> Any:
        """Call the function with arrays at their addresses, or at others."""
        sizes = [0 if arguments[place] is None else arguments[place].nbytes for place in self._endless]
        for place, one in self._arrays:
            if arguments[place] is not None:
                arguments[place] = addresses[one.name] if one.name in addresses else arguments[place].ctypes.data
        if not self._endless:
            return self._call(*arguments)
        memory = ((arguments[place], size) for place, size in zip(self._endless, sizes, strict=True))
        told = _united(one for one in memory if one[0] is not None)
        try:
            for start, size in told:
                self._tell(ctypes.c_void_p(start), ctypes.c_longlong(size))
            return self._call(*arguments)
        finally:
            for start, _ in told:
                self._tell(ctypes.c_void_p(start), ctypes.c_longlong(0))

    def _repeated(self, arguments: Sequence[Any], given: int, named: Iterable[str]) -> Repeated:
        """Return what calls are compared with that have as many arguments by position and the same ones by name.

        Numbers that sizes of arrays are made of must be the same then; others must only fit their types.
        """
        checks: list[tuple[int, Any, Any, Any]] = []
        for name in (*self._positional(given)[:given], *named):
            place = self._names.index(name)
            one, value = self._parameters[place], arguments[place]
            if value is None:
                checks.append((place, type(None), None, None))
            elif one.type is None:
                # An empty array has no address: no shape is this one.
                checks.append((place, ndarray, value.dtype, value.shape if value.size else None))
            elif one.type.floating:
                checks.append((place, float, 0, 0))
            elif name in self._sizes:
                checks.append((place, int, value, value))
            else:
                checks.append((place, int, one.type.least, one.type.greatest))
        return Repeated([None if type(one) is np.ndarray else one for one in arguments], checks)

    def _positional(self, given: int) -> Sequence[str]:
        """Return the names that so many arguments by position belong to."""
        needed = [name for name in self._names if name not in self._optional]
        return needed if given <= len(needed) else self._names

    def select(self, *given: Any, machine: str | None = None, **named: Any) -> Choice:
        """Return which leaf and variant these arguments take on a machine (``"h100"``), and why no other.

        The parameters that schedules depend on suffice.  Raises what ``machine_values`` raises.
        """
        if given:
            arguments = self._arguments(given, named)
            named = dict(zip(self._names, arguments, strict=True))
        named = {**named, **self._asked(named)}
        limits = machine_values(machine or CPU_MACHINE)
        selections = {}
        for one in self._schedules:
            point: dict[str, Any] = {symbol: limits[name] for symbol, name in one.fields.items() if name in limits}
            point |= {name: int(named[name]) for name in (*one.data, *one.program) if name in named}
            selections[one.name] = select(without_unasked(one, point)[0], point)
        return Choice(self._schedules, selections)

    def _asked(self, values: Mapping[str, Any]) -> dict[str, int]:
        """Return which of the optional arrays there are, by the names of the integers that say so."""
        optional = ((one.name, one.given.name) for _, one in self._arrays if one.given is not None)
        return {asked: int(values[name] is not None) for name, asked in optional if name in values}

    def _arguments(self, given: Sequence[Any], named: Mapping[str, Any], stream: int | None = None) -> list[Any]:
        """Return all arguments in order, arrays as ndarrays; what extents say is filled in."""
        if len(given) == len(self._names) and not named:
            values = dict(zip(self._names, given, strict=True))
        else:
            values = self._bound(given, named)
        for _, one in self._arrays:
            if values[one.name] is not None or not (one.nullable or one.given):
                values[one.name] = self._array(one, values[one.name], stream)
        for one in self._scalars:
            if one.name in values:
                values[one.name] = self._scalar(one, values[one.name])
        missing = [name for name in self._names if name not in values]
        if missing:
            self._infer(values, missing)
        return [values[name] for name in self._names]

    def _bound(self, given: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        positional = self._positional(len(given))
        if len(given) > len(positional):
            raise TypeError(f"{self.__name__} takes {len(self._names)} arguments, not {len(given)}: {self.__doc__}")
        values = dict(zip(positional, given, strict=False))
        for name, value in named.items():
            if name not in self._names:
                raise TypeError(f"{self.__name__} has no argument {name!r}: {self.__doc__}")
            if name in values:
                raise TypeError(f"{self.__name__}: {name} is given twice")
            values[name] = value
        missing = [name for name in self._names if name not in values and name not in self._optional]
        if missing:
            raise TypeError(f"{self.__name__}: {', '.join(missing)} missing: {self.__doc__}")
        return values

    def _array(self, one: FunctionParameter, value: Any, stream: int | None) -> np.ndarray[Any, Any]:
        """Return an argument as an ndarray of the declared type that C can walk, without a copy."""
        assert one.array is not None
        name, dtype = one.name, self._dtypes[one.name]
        if value is None:
            asked = "and the function does not ask whether it is null"
            raise TypeError(f"{self.__name__}: {name} is None, {asked}; give an array of {dtype}")
        if type(value) is not np.ndarray:
            value = _as_ndarray(name, value, dtype, stream)
            if self._cpu and type(value) is OnDevice:
                raise TypeError(
                    f"{self.__name__}: {name} is in the memory of a GPU, and the kernels were built for the processor"
                )
        if one.members == COMPLEX and value.dtype.kind == "c" and value.dtype.itemsize == 2 * dtype.itemsize:
            parts = (*value.shape, 2)
            value = value.view(dtype).reshape(parts) if value.flags.c_contiguous else value
        structured, dimensions = value.dtype.fields is not None, len(one.array.extents)
        if structured and one.members:
            dimensions -= 1
            fault = self._layouts[name].fault(value.dtype)
            if fault:
                hint = "numpy.dtype(..., align=True) lays members out as C does"
                raise TypeError(f"{self.__name__}: {name} is an array of other structures: {fault}; {hint}")
        elif one.slots:
            wanted = ", ".join(f"{member}: {type_}" for member, (type_, _) in self._layouts[name].places.items())
            raise TypeError(f"{self.__name__}: {name} is an array of {value.dtype}; give one of structures ({wanted})")
        elif value.dtype != dtype:
            raise TypeError(f"{self.__name__}: {name} is an array of {value.dtype}; {one.declaration} takes {dtype}")
        if value.ndim != dimensions:
            declared = _declared(one) if structured else one.declaration
            raise ValueError(f"{self.__name__}: {name} has {value.ndim} dimensions, {declared} has {dimensions}")
        flags = value.flags
        if not flags.c_contiguous:
            raise ValueError(f"{self.__name__}: {name} is not contiguous; numpy.ascontiguousarray makes a copy that is")
        if not flags.writeable and not one.const:
            raise ValueError(f"{self.__name__}: {name} is read-only, and {_declared(one)} may be written")
        found: np.ndarray[Any, Any] = value
        return found

    def _scalar(self, one: FunctionParameter, value: Any) -> Any:
        """Return a number that the declared type holds."""
        assert one.type is not None
        try:
            if one.type.floating:
                return value.__float__()
            number = operator.index(value)
        except (AttributeError, TypeError):
            raise TypeError(f"{self.__name__}: {one.name} is {value!r}; {one.declaration} takes a number") from None
        if not one.type.least <= number <= one.type.greatest:
            raise ValueError(f"{self.__name__}: {one.name} is {number}, which {one.declaration} does not hold")
        return number

    def _infer(self, values: dict[str, Any], missing: list[str]) -> None:
        """Find scalars that extents of arrays determine, one after the other."""
        while missing:
            found = None
            for _, one in self._arrays:
                assert one.array is not None
                shape = () if values[one.name] is None else values[one.name].shape
                for extent, length in zip(one.array.extents, shape, strict=False):
                    unknown = [name for name in variables(extent) if name in missing]
                    if len(unknown) == 1 and found is None:
                        number = _solved(extent, unknown[0], {**values, **self._asked(values)}, length)
                        found = None if number is None else (unknown[0], number)
            if found is None:
                raise TypeError(f"{self.__name__}: {', '.join(missing)}: no shape says what it is; give it by name")
            values[found[0]] = found[1]
            missing.remove(found[0])

    def _check_shapes(self, arguments: Sequence[Any]) -> None:
        """Compare shapes with the declared extents."""
        given = dict(zip(self._names, arguments, strict=True))
        values = {name: value for name, value in given.items() if isinstance(value, int)} | self._asked(given)
        for place, one in self._arrays:
            assert one.array is not None
            shape = () if arguments[place] is None else arguments[place].shape
            for axis, (extent, length) in enumerate(zip(one.array.extents, shape, strict=False)):
                if extent == ENDLESS:
                    continue
                try:
                    wanted = integer_value(extent, values)
                except (NoValueError, ZeroDivisionError):
                    continue  # it depends on what only the program computes
                if wanted != length:
                    said = ", ".join(f"{name} = {values[name]}" for name in sorted(variables(extent)) if name in values)
                    where = f"{_declared(one)} is {wanted} there" + (f" where {said}" if said else "")
                    raise ValueError(
                        f"{self.__name__}: {one.name} has {length} elements in dimension {axis}, and {where}"
                    )


def _as_array(one: FunctionParameter) -> FunctionParameter:
    """Return a pointer to scalars as an array of as many as are given, if the file does not say how many."""
    if one.array is not None or one.pointed is None or one.columns:
        return one
    return replace(one, array=Array(one.name, one.pointed, (ENDLESS,)))


def _united(memory: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return addresses with sizes in bytes, of which those that overlap have become one."""
    found: list[tuple[int, int]] = []
    for start, size in sorted(memory):
        if found and start < sum(found[-1]):
            first, before = found.pop()
            start, size = first, max(before, start + size - first)
        found.append((start, size))
    return found


def _refusal(function: Function, parameters: Sequence[FunctionParameter]) -> str:
    """Return why a function cannot be called; empty where it can."""
    for one in parameters:
        if one.parts or (one.array is None and one.type is None):
            return f"its parameter {_declared(one)} is a structure or a pointer of its own"
    returned = _returned(function)
    return "" if returned in _RETURNED else f"it returns {returned}"


def _returned(function: Function) -> str:
    words = [word for word in function.returns.split() if word not in ("extern", "inline", "const")]
    return " ".join(words) or "int"


def _dtype(one: FunctionParameter) -> np.dtype[Any]:
    assert one.array is not None
    found: np.dtype[Any] = np.dtype(NUMPY_TYPES[one.array.element])
    return found


def _declared(one: FunctionParameter) -> str:
    """Return a parameter as C has it: of an array of structures without the dimension of the members."""
    if not one.members:
        return one.text or one.declaration
    extents = one.declaration.partition(f" {one.name}[")[2].rpartition("[")[0]
    return f"{'const ' if one.const else ''}{one.structure or 'struct {...}'} {one.name}[{extents}"


def _layout(one: FunctionParameter) -> Layout:
    """Return where the members of a structure lie: of one type they follow each other."""
    assert one.array is not None
    own = one.array.element
    slots = one.slots or [Slot(own, number * own.size) for number in range(len(one.members))]
    columns = integer_value(one.array.extents[-1], {})
    places = {
        name: (np.dtype(NUMPY_TYPES[slot.type]), slot.offset) for name, slot in zip(one.members, slots, strict=True)
    }
    return Layout(places, columns * own.size)


def _as_ndarray(name: str, value: Any, dtype: np.dtype[Any], stream: int | None) -> np.ndarray[Any, Any]:
    """Return what another library holds in memory of the host or of a GPU, without a copy."""
    if isinstance(value, np.ndarray):
        return np.asarray(value)
    try:
        found = on_device(value, stream)
        if found is not None:
            return found
        if hasattr(value, "__dlpack__"):
            of_host: np.ndarray[Any, Any] = np.from_dlpack(value)
            return of_host
    except (BufferError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise TypeError(f"{name} cannot be taken as an array: {error}") from error
    raise TypeError(f"{name} is {type(value).__name__}; give a NumPy array of {dtype}")


def _solved(extent: Expr, name: str, values: Mapping[str, Any], length: int) -> int | None:
    """Return the number for which an extent is a length, where it grows with it by a constant."""
    known = {one: value for one, value in values.items() if isinstance(value, int)}
    try:
        at_none, at_one = (integer_value(extent, {**known, name: number}) for number in (0, 1))
        step = at_one - at_none
        if step == 0 or (length - at_none) % step:
            return None
        number = (length - at_none) // step
        return number if integer_value(extent, {**known, name: number}) == length else None
    except (NoValueError, ZeroDivisionError):
        return None
