"""Register-to-register instructions as functions on NumPy arrays.

``compile_operation`` reads an instruction's opcode and modifiers once and gives the types of its sources and result and
the function between them.  Results are exact: round to nearest even, no contraction, unless the instruction says
otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from metafork.ptx.emulation.evaluate import instruction_types
from metafork.ptx.interpreter import floats, integers
from metafork.ptx.text.source import PtxError
from metafork.ptx.text.syntax import Instruction

Array: TypeAlias = npt.NDArray[Any]

NUMPY_TYPES: dict[str, Any] = {
    "pred": np.bool_, "b8": np.uint8, "u8": np.uint8, "s8": np.int8, "b16": np.uint16, "u16": np.uint16,
    "s16": np.int16, "f16": np.float16, "b32": np.uint32, "u32": np.uint32, "s32": np.int32, "f32": np.float32,
    "b64": np.uint64, "u64": np.uint64, "s64": np.int64, "f64": np.float64,
}  # fmt: skip
"""The NumPy type that holds values of a PTX type."""

_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip
_UNORDERED = {"equ": "eq", "neu": "ne", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge"}
_ROUNDINGS = ("rn", "rz", "rm", "rp", "rna")


class Operation(Struct, frozen=True):
    """What an instruction computes: source types in operand order, result type, and the function."""

    sources: tuple[str, ...]
    result: str
    apply: Callable[..., Array]


def compile_operation(instruction: Instruction) -> Operation:
    """Return the operation of an instruction.

    Raises:
        PtxError: the opcode, or its form, is not known here; the error points at the instruction.
    """
    kinds = instruction_types(instruction)
    builder = _BUILDERS.get(instruction.opcode)
    if builder is None or not kinds or any(kind not in NUMPY_TYPES for kind in kinds):
        raise unsupported(instruction)
    return builder(instruction, kinds)


def unsupported(instruction: Instruction) -> PtxError:
    """Return the error that an instruction cannot be interpreted."""
    return PtxError(f"the interpreter does not know {instruction.mnemonic}", instruction.span)


def _is_float(kind: str) -> bool:
    return kind[0] == "f"


def _finish(instruction: Instruction, function: Callable[..., Array]) -> Callable[..., Array]:
    """Add ``.ftz`` and ``.sat`` of floating-point arithmetic to a function."""
    modifiers = instruction.modifiers
    if "ftz" in modifiers:
        inner = function

        def flushed(*values: Array) -> Array:
            return floats.flush(inner(*map(floats.flush, values)))

        function = flushed
    if "sat" in modifiers:
        unclamped = function

        def clamped(*values: Array) -> Array:
            return floats.saturate(unclamped(*values))

        function = clamped
    return function


def _directed(instruction: Instruction, kind: str, wide: Callable[..., Array]) -> Callable[..., Array] | None:
    """Return a single-precision function rounded as told from an exact double one; ``None`` for round to nearest."""
    mode = next((m for m in instruction.modifiers if m in _ROUNDINGS), "rn")
    if mode == "rn":
        return None
    if kind != "f32" or mode == "rna":
        raise unsupported(instruction)

    def rounded(*values: Array) -> Array:
        return floats.to_single(wide(*(value.astype(np.float64) for value in values)), mode)

    return rounded


def _arithmetic(
    name: str, plain: Callable[[Array, Array], Array], exact: Callable[..., Array]
) -> Callable[[Instruction, list[str]], Operation]:
    def build(instruction: Instruction, kinds: list[str]) -> Operation:
        kind = kinds[-1]
        if _is_float(kind):
            function = _directed(instruction, kind, exact) or plain
            return Operation((kind, kind), kind, _finish(instruction, function))
        if "sat" in instruction.modifiers and kind == "s32":

            def saturated(a: Array, b: Array) -> Array:
                wide = plain(a.astype(np.int64), b.astype(np.int64))
                return np.clip(wide, -(2**31), 2**31 - 1).astype(np.int32)

            return Operation((kind, kind), kind, saturated)
        if name == "mul":
            return _integer_product(instruction, kind)
        return Operation((kind, kind), kind, plain)

    return build


def _exact_sum(a: Array, b: Array) -> Array:
    return floats.odd_sum(a, b)


def _exact_difference(a: Array, b: Array) -> Array:
    return floats.odd_sum(a, -b)


def _wide_type(kind: str) -> str:
    return f"{kind[0]}{2 * int(kind[1:])}"


def _integer_product(instruction: Instruction, kind: str) -> Operation:
    modifiers = instruction.modifiers
    if "wide" in modifiers:
        return Operation((kind, kind), _wide_type(kind), lambda a, b: integers.widen(a) * integers.widen(b))
    if "hi" in modifiers:
        return Operation((kind, kind), kind, integers.multiply_high)
    return Operation((kind, kind), kind, np.multiply)


def _mul24(instruction: Instruction, kinds: list[str]) -> Operation:
    kind = kinds[-1]

    def product(a: Array, b: Array) -> Array:
        eight = a.dtype.type(8)
        wide = (a << eight >> eight).astype(np.int64) * (b << eight >> eight).astype(np.int64)
        result: Array = (wide >> 16 if "hi" in instruction.modifiers else wide).astype(a.dtype)
        return result

    if instruction.opcode == "mul24":
        return Operation((kind, kind), kind, product)
    return Operation((kind, kind, kind), kind, lambda a, b, c: product(a, b) + c)


def _mad(instruction: Instruction, kinds: list[str]) -> Operation:
    kind = kinds[-1]
    if _is_float(kind):
        return _fma(instruction, kinds)
    product = _integer_product(instruction, kind)
    return Operation((kind, kind, product.result), product.result, lambda a, b, c: product.apply(a, b) + c)


def _fma(instruction: Instruction, kinds: list[str]) -> Operation:
    kind = kinds[-1]

    def exact(a: Array, b: Array, c: Array) -> Array:
        return floats.odd_sum(a * b, c)

    function = _directed(instruction, kind, exact) or floats.fma
    return Operation((kind, kind, kind), kind, _finish(instruction, function))


def _divide(instruction: Instruction, kinds: list[str]) -> Operation:
    kind = kinds[-1]
    if not _is_float(kind):
        return Operation((kind, kind), kind, integers.divide)
    if {"rz", "rm", "rp"}.intersection(instruction.modifiers):
        raise unsupported(instruction)
    return Operation((kind, kind), kind, _finish(instruction, np.divide))


def _unary_float(instruction: Instruction, kinds: list[str]) -> Operation:
    kind, opcode = kinds[-1], instruction.opcode
    if not _is_float(kind) or {"rz", "rm", "rp"}.intersection(instruction.modifiers):
        raise unsupported(instruction)
    function: Callable[[Array], Array] = lambda a: floats.approximate(opcode, a)  # noqa: E731  # chosen below
    if opcode == "sqrt":
        function = np.sqrt
    elif opcode == "rcp":
        function = np.reciprocal
    return Operation((kind,), kind, _finish(instruction, function))


def _extreme(instruction: Instruction, kinds: list[str]) -> Operation:
    kind, smaller = kinds[-1], instruction.opcode == "min"
    if not _is_float(kind):
        return Operation((kind, kind), kind, np.minimum if smaller else np.maximum)
    function = floats.minimum if smaller else floats.maximum
    nan = "NaN" in instruction.modifiers
    return Operation((kind, kind), kind, _finish(instruction, lambda a, b: function(a, b, nan=nan)))


def _absolute(instruction: Instruction, kinds: list[str]) -> Operation:
    kind = kinds[-1]
    # np.fabs keeps NaN payloads as the hardware's sign-bit operation does.
    return Operation((kind,), kind, _finish(instruction, np.abs) if _is_float(kind) else np.abs)


def _negate(instruction: Instruction, kinds: list[str]) -> Operation:
    kind = kinds[-1]
    return Operation((kind,), kind, _finish(instruction, np.negative) if _is_float(kind) else np.negative)


def _same(function: Callable[..., Array], count: int) -> Callable[[Instruction, list[str]], Operation]:
    def build(instruction: Instruction, kinds: list[str]) -> Operation:
        return Operation((kinds[-1],) * count, kinds[-1], function)

    return build


def _logic(function: Callable[..., Array], logical: Callable[..., Array]) -> Callable[..., Operation]:
    def build(instruction: Instruction, kinds: list[str]) -> Operation:
        kind = kinds[-1]
        return Operation((kind, kind), kind, logical if kind == "pred" else function)

    return build


def _not(instruction: Instruction, kinds: list[str]) -> Operation:
    return Operation((kinds[-1],), kinds[-1], np.logical_not if kinds[-1] == "pred" else np.invert)


def _cnot(instruction: Instruction, kinds: list[str]) -> Operation:
    return Operation((kinds[-1],), kinds[-1], lambda a: (a == 0).astype(a.dtype))


def _shift(instruction: Instruction, kinds: list[str]) -> Operation:
    kind = kinds[-1]
    function = integers.shift_left if instruction.opcode == "shl" else integers.shift_right
    return Operation((kind, "u32"), kind, function)


def _funnel(instruction: Instruction, kinds: list[str]) -> Operation:
    left, wrap = "l" in instruction.modifiers, "wrap" in instruction.modifiers
    return Operation(("u32", "u32", "u32"), "u32", lambda a, b, c: integers.funnel(a, b, c, left=left, wrap=wrap))


def _extract(instruction: Instruction, kinds: list[str]) -> Operation:
    return Operation((kinds[-1], "u32", "u32"), kinds[-1], integers.extract_field)


def _insert(instruction: Instruction, kinds: list[str]) -> Operation:
    return Operation((kinds[-1], kinds[-1], "u32", "u32"), kinds[-1], integers.insert_field)


def _permute(instruction: Instruction, kinds: list[str]) -> Operation:
    if instruction.modifiers != ("b32",):
        raise unsupported(instruction)
    return Operation(("u32", "u32", "u32"), "u32", integers.permute)


def _to_count(function: Callable[[Array], Array]) -> Callable[..., Operation]:
    def build(instruction: Instruction, kinds: list[str]) -> Operation:
        return Operation((kinds[-1].replace("b", "u"),), "u32", function)

    return build


def _find_leading(instruction: Instruction, kinds: list[str]) -> Operation:
    amount = "shiftamt" in instruction.modifiers
    return Operation((kinds[-1],), "u32", lambda a: integers.find_leading(a, shift_amount=amount))


def _logic3(instruction: Instruction, kinds: list[str]) -> Operation:
    if len(instruction.operands) != 5:
        raise unsupported(instruction)
    table = int(str(instruction.operands[4]), 0)
    return Operation(("b32",) * 3, "b32", lambda a, b, c, *_: integers.logic3(a, b, c, table))


def _pick(a: Array, b: Array, condition: Array) -> Array:
    return np.where(condition, a, b)


def _select(instruction: Instruction, kinds: list[str]) -> Operation:
    kind = kinds[-1]
    return Operation((kind, kind, "pred"), kind, _pick)


def _select_sign(instruction: Instruction, kinds: list[str]) -> Operation:
    return Operation((kinds[0], kinds[0], kinds[1]), kinds[0], lambda a, b, c: _pick(a, b, c >= 0))


def comparison(instruction: Instruction, kind: str) -> Callable[[Array, Array], Array]:
    """Return the comparison of ``setp`` and ``set``.

    Raises:
        PtxError: there is no comparison among the modifiers.
    """
    ftz = "ftz" in instruction.modifiers
    for modifier in instruction.modifiers:
        if modifier in _COMPARE:
            if _is_float(kind) and modifier == "ne":  # ordered: false for NaN, unlike NumPy's
                return lambda a, b: (a < b) | (a > b)
            return _flushed_comparison(_COMPARE[modifier]) if ftz else _COMPARE[modifier]
        if modifier in _UNORDERED:
            ordered = _COMPARE[_UNORDERED[modifier]]
            return lambda a, b: ordered(a, b) | np.isnan(a) | np.isnan(b)
        if modifier in ("num", "nan"):
            wanted = modifier == "nan"
            return lambda a, b: (np.isnan(a) | np.isnan(b)) == wanted
    raise unsupported(instruction)


def _flushed_comparison(plain: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: plain(floats.flush(a), floats.flush(b))


def _set(instruction: Instruction, kinds: list[str]) -> Operation:
    compare = comparison(instruction, kinds[1])
    target = NUMPY_TYPES[kinds[0]]
    if len(instruction.operands) != 3:
        raise unsupported(instruction)
    true = target(1) if _is_float(kinds[0]) else target(-1) if kinds[0][0] == "s" else ~target(0)
    return Operation((kinds[1], kinds[1]), kinds[0], lambda a, b: np.where(compare(a, b), true, target(0)))


def _copysign(instruction: Instruction, kinds: list[str]) -> Operation:
    return Operation((kinds[-1],) * 2, kinds[-1], lambda a, b: np.copysign(b, a))


def _test(instruction: Instruction, kinds: list[str]) -> Operation:
    tests: dict[str, Callable[[Array], Array]] = {
        "finite": np.isfinite, "infinite": np.isinf, "number": lambda a: ~np.isnan(a), "notanumber": np.isnan,
        "subnormal": lambda a: (a != 0) & (np.abs(a) < np.finfo(a.dtype).tiny),
        "normal": lambda a: np.isfinite(a) & (np.abs(a) >= np.finfo(a.dtype).tiny),
    }  # fmt: skip
    test = next((tests[m] for m in instruction.modifiers if m in tests), None)
    if test is None:
        raise unsupported(instruction)
    return Operation((kinds[-1],), "pred", test)


def _convert(instruction: Instruction, kinds: list[str]) -> Operation:
    if len(kinds) != 2:
        raise unsupported(instruction)
    target, source = kinds
    modifiers = instruction.modifiers
    to = NUMPY_TYPES[target]
    mode = next((m for m in modifiers if m in (*_ROUNDINGS, "rni", "rzi", "rmi", "rpi")), "rn")
    if _is_float(source) and not _is_float(target):
        if mode not in ("rni", "rzi", "rmi", "rpi"):
            raise unsupported(instruction)
        ftz = "ftz" in modifiers
        return Operation((source,), target, lambda a: floats.to_integer(floats.flush(a) if ftz else a, to, mode))
    if not _is_float(target):
        if "sat" not in modifiers:
            return Operation((source,), target, lambda a: a.astype(to))
        limits = np.iinfo(to)

        def clamp(a: Array) -> Array:
            if a.dtype.kind == "u":
                return np.minimum(a, min(limits.max, np.iinfo(a.dtype).max)).astype(to)
            own = np.iinfo(a.dtype)
            return np.clip(a, max(limits.min, own.min), min(limits.max, own.max)).astype(to)

        return Operation((source,), target, clamp)
    if mode in ("rni", "rzi", "rmi", "rpi"):  # float to integral float
        rounding = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[mode]
        return Operation((source,), target, _finish(instruction, lambda a: rounding(a).astype(to)))
    if mode != "rn" and (target != "f32" or source in ("s64", "u64")):
        raise unsupported(instruction)

    def convert(a: Array) -> Array:
        if mode != "rn":
            return floats.to_single(a.astype(np.float64), mode)
        result: Array = a.astype(to)
        if target == "f16":
            result[np.isnan(a)] = np.array(0x7FFF, np.uint16).view(np.float16)
        return result

    return Operation((source,), target, _finish(instruction, convert))


def _move(instruction: Instruction, kinds: list[str]) -> Operation:
    return Operation((kinds[-1],), kinds[-1], lambda a: a)


def _sad(instruction: Instruction, kinds: list[str]) -> Operation:
    kind = kinds[-1]
    return Operation((kind,) * 3, kind, lambda a, b, c: c + np.where(a < b, b - a, a - b))


_BUILDERS: dict[str, Callable[[Instruction, list[str]], Operation]] = {
    "add": _arithmetic("add", np.add, _exact_sum), "sub": _arithmetic("sub", np.subtract, _exact_difference),
    "mul": _arithmetic("mul", np.multiply, np.multiply), "mad": _mad, "fma": _fma, "mul24": _mul24, "mad24": _mul24,
    "div": _divide, "rem": _same(integers.remainder, 2), "min": _extreme, "max": _extreme, "abs": _absolute,
    "neg": _negate, "sad": _sad, "and": _logic(np.bitwise_and, np.logical_and),
    "or": _logic(np.bitwise_or, np.logical_or), "xor": _logic(np.bitwise_xor, np.logical_xor), "not": _not,
    "cnot": _cnot, "shl": _shift, "shr": _shift, "shf": _funnel, "bfe": _extract, "bfi": _insert, "prmt": _permute,
    "popc": _to_count(integers.count_ones), "clz": _to_count(integers.leading_zeros), "bfind": _find_leading,
    "brev": _same(integers.reverse_bits, 1), "lop3": _logic3, "selp": _select, "slct": _select_sign, "set": _set,
    "copysign": _copysign, "testp": _test, "cvt": _convert, "mov": _move, "sqrt": _unary_float, "rcp": _unary_float,
    "rsqrt": _unary_float, "sin": _unary_float, "cos": _unary_float, "ex2": _unary_float, "lg2": _unary_float,
    "tanh": _unary_float,
}  # fmt: skip
