"""Gathers with names: loads and rearrangements that sketches use often, as cases over the output indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from metafork.swizzle.model.index import Index, Name, Number, binary, compare
from metafork.swizzle.model.problem import Case, Read, Shape
from metafork.swizzle.model.specification import SketchError, shape_text

Options = Mapping[str, Sequence[int]]
NamedGather = Callable[[Sequence[Shape], Shape, Options], tuple[Shape, list[Case]]]


def _only(shapes: Sequence[Shape]) -> Shape:
    if len(shapes) != 1:
        raise SketchError(f"this gather takes one array, not {len(shapes)}")
    return shapes[0]


def _axes(shape: Shape) -> list[Index]:
    return [Name(f"d{axis}") for axis in range(len(shape))]


def _linear(indices: Sequence[Index], lengths: Sequence[int]) -> Index:
    """Number cells with the first index running fastest."""
    result: Index = Number(0)
    for index, length in zip(reversed(indices), reversed(lengths), strict=True):
        result = binary("+", binary("*", result, Number(length)), index)
    return result


def _column_major(shape: Shape, out: Shape) -> tuple[Index, int]:
    if len(shape) != 1:
        raise SketchError(f"a column-major load takes a one-dimensional array, not the shape {shape_text(shape)}")
    return _linear(_axes(out), out), shape[0]


def _load_rep(shapes: Sequence[Shape], out: Shape, _: Options) -> tuple[Shape, list[Case]]:
    at, size = _column_major(_only(shapes), out)
    repeated = at if prod(out) <= size else binary("%", at, Number(size))
    return out, [Case(None, Read(0, (repeated,)))]


def _load_trunc(shapes: Sequence[Shape], out: Shape, _: Options) -> tuple[Shape, list[Case]]:
    at, size = _column_major(_only(shapes), out)
    inside = None if prod(out) <= size else compare("<", at, Number(size))
    return out, [Case(inside, Read(0, (at,))), *([] if inside is None else [Case(None, None)])]


def _load_grid_2d(shapes: Sequence[Shape], out: Shape, _: Options) -> tuple[Shape, list[Case]]:
    shape = _only(shapes)
    if len(shape) != 2 or len(out) != 4:
        raise SketchError(f"load_grid_2d goes from two axes to four, not from {shape_text(shape)} to {shape_text(out)}")
    axes = _axes(out)
    at = [binary("+", axes[one], binary("*", Number(out[one]), axes[one + 2])) for one in (0, 1)]
    inside = compare("&&", compare("<", at[0], Number(shape[0])), compare("<", at[1], Number(shape[1])))
    return out, [Case(inside, Read(0, tuple(at))), Case(None, None)]


def _broadcast(shapes: Sequence[Shape], out: Shape, options: Options) -> tuple[Shape, list[Case]]:
    shape = _only(shapes)
    added = len(out) - len(shape)
    first = options.get("group", [0])[0]
    kept = [axis for axis in range(len(out)) if not first <= axis < first + added]
    if added < 0 or tuple(out[axis] for axis in kept) != shape:
        raise SketchError(f"cannot spread the shape {shape_text(shape)} over {shape_text(out)} with axes from {first}")
    return out, [Case(None, Read(0, tuple(_axes(out)[axis] for axis in kept)))]


def _reshape(shapes: Sequence[Shape], out: Shape, _: Options) -> tuple[Shape, list[Case]]:
    shape = _only(shapes)
    if prod(shape) != prod(out):
        raise SketchError(f"the shape {shape_text(shape)} cannot be laid out as the shape {shape_text(out)}")
    axes = _axes(out)
    at = _linear(axes[::-1], out[::-1])
    indices: list[Index] = []
    for axis in range(len(shape)):
        below = prod(shape[axis + 1 :])
        quotient = binary("/", at, Number(below))
        indices.append(quotient if axis == 0 else binary("%", quotient, Number(shape[axis])))
    return out, [Case(None, Read(0, tuple(indices)))]


def _transpose(shapes: Sequence[Shape], out: Shape, _: Options) -> tuple[Shape, list[Case]]:
    shape = _only(shapes)
    if shape[::-1] != out:
        raise SketchError(f"the transpose of the shape {shape_text(shape)} is not {shape_text(out)}")
    return out, [Case(None, Read(0, tuple(_axes(out)[::-1])))]


def _rotate_axes(shapes: Sequence[Shape], out: Shape, options: Options) -> tuple[Shape, list[Case]]:
    shape = _only(shapes)
    right = options["r"][0] if "r" in options else -options.get("l", [0])[0]
    turned = tuple(shape[(axis - right) % len(shape)] for axis in range(len(shape)))
    if turned != out:
        raise SketchError(f"the axes of {shape_text(shape)} turn to {shape_text(turned)}, not to {shape_text(out)}")
    axes = _axes(out)
    return out, [Case(None, Read(0, tuple(axes[(axis + right) % len(shape)] for axis in range(len(shape)))))]


def _stack(shapes: Sequence[Shape], out: Shape, _: Options) -> tuple[Shape, list[Case]]:
    if any(shape != shapes[0] for shape in shapes) or out != (*shapes[0], len(shapes)):
        listed = " and ".join(shape_text(shape) for shape in shapes)
        raise SketchError(f"arrays of the shapes {listed} do not stack to the shape {shape_text(out)}")
    axes = _axes(out)
    inner = tuple(axes[:-1])
    cases = [Case(compare("==", axes[-1], Number(number)), Read(number, inner)) for number in range(len(shapes) - 1)]
    return out, [*cases, Case(None, Read(len(shapes) - 1, inner))]


NAMED_GATHERS: dict[str, NamedGather] = {
    "load_rep": _load_rep,
    "load_trunc": _load_trunc,
    "load_grid_2d": _load_grid_2d,
    "broadcast": _broadcast,
    "reshape": _reshape,
    "identity": _reshape,
    "transpose": _transpose,
    "rot_idx": _rotate_axes,
    "stack": _stack,
}
