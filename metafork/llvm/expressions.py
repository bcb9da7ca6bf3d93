"""Expressions of a kernel as LLVM values: C's types, conversions and order of evaluation.

The half of ``metafork.llvm.llvm_ir`` that knows C's expressions; statements and memories are the other half.
"""

from __future__ import annotations

from typing import assert_never

from msgspec import Struct

from metafork.ir import program as ir
from metafork.ir.arithmetic.exact_constants import floating_value
from metafork.ir.arithmetic.math_functions import OF_SMALL, SIGNATURES
from metafork.ir.arithmetic.types import ScalarType, common_type, promoted
from metafork.ir.kernel import ALIGNED, OFFSET, QUOTIENT, SHUFFLE, VECTOR_BYTES, WARPS, Memory, Space
from metafork.llvm.builder import DOUBLE, FLOAT, I1, I32, I64, Function, Module, Value, constant
from metafork.llvm.targets import SPECIAL_REGISTERS, Target

INT = ScalarType.INT
_INTRINSICS = {
    "ceil": "ceil",
    "copysign": "copysign",
    "fabs": "fabs",
    "floor": "floor",
    "fma": "fma",
    "fmax": "maxnum",
    "fmin": "minnum",
    "nearbyint": "nearbyint",
    "rint": "rint",
    "round": "round",
    "sqrt": "sqrt",
    "trunc": "trunc",
}
"""Functions of ``math.h`` that an LLVM intrinsic computes exactly on NVPTX; with and without ``f``."""
_FLOATING = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_WRAPPING = {"+": "add", "-": "sub", "*": "mul"}
_SIGNED = {"/": "sdiv", "%": "srem", ">>": "ashr"}
_UNSIGNED = {"/": "udiv", "%": "urem", ">>": "lshr"}
_BITS = {"<<": "shl", "&": "and", "|": "or", "^": "xor"}
_CONDITIONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}


class Typed(Struct):
    """A value with its C type; ``bool`` is an ``i8`` that is 0 or 1, as it is in memory."""

    value: Value
    type: ScalarType


_TYPES = {
    **{type_: f"i{8 * type_.size}" for type_ in ScalarType},
    ScalarType.FLOAT: FLOAT,
    ScalarType.DOUBLE: DOUBLE,
}


def llvm_type(type_: ScalarType) -> str:
    """Return the LLVM type of a C type."""
    return _TYPES[type_]


def constant_of(value: ir.IntConst | ir.FloatConst) -> int | float:
    """Return a constant as LLVM is given it."""
    return value.value if isinstance(value, ir.IntConst) else floating_value(value.text, value.type)


def alignment(target: ir.Var | ir.Element) -> int | None:
    """Return the alignment of the first of elements that are accessed together, in bytes; ``None``: its type's."""
    if isinstance(target, ir.Var) or target.part is None or target.part.place:
        return None
    return target.part.lanes * target.type.size


class ExpressionLowering:
    """Puts the instructions of expressions; knows the scalars in scope and the memories."""

    def __init__(self, target: Target, function: Function) -> None:
        self.target, self.function = target, function
        self.module = Module(target.triple)
        # A scalar is its slot, or the value of one that is never assigned.
        self.scopes: list[dict[str, tuple[Value, ScalarType] | Typed]] = [{}]
        self.memories: dict[str, tuple[Value, Memory]] = {}

    def value(self, expr: ir.Expr) -> Typed:
        """Lower an expression to a value of the type that C gives it."""
        match expr:  # the most frequent ones first
            case ir.Binary():
                if expr.op in ir.COMPARISONS or expr.op in ir.LOGICAL:
                    return Typed(self.function.cast("zext", self.truth(expr), I32), INT)
                return self.arithmetic(expr.op, self.value(expr.left), self.value(expr.right))
            case ir.Var():
                if expr.name in SPECIAL_REGISTERS:
                    return Typed(self.target.special_register(self, expr.name), ScalarType.UNSIGNED_INT)
                place = self.variable(expr.name)
                if isinstance(place, Typed):
                    return place
                address, type_ = place
                return Typed(self.function.load(address, _TYPES[type_]), type_)
            case ir.Element():
                address, type_ = self.address(expr)
                return Typed(self.function.load(address, _TYPES[type_], alignment(expr)), type_)
            case ir.IntConst(value=value, type=type_):
                return Typed(constant(llvm_type(type_), value), type_)
            case ir.FloatConst(text=text, type=type_):
                return Typed(constant(llvm_type(type_), floating_value(text, type_)), type_)
            case ir.Unary():
                return self._unary(expr)
            case ir.Conditional():
                return self._conditional(expr)
            case ir.Cast(type=type_, operand=operand):
                return Typed(self.convert(self.value(operand), type_), type_)
            case ir.Call():
                return self._call(expr)
            case _:
                assert_never(expr)

    def address(self, target: ir.Var | ir.Element) -> tuple[Value, ScalarType]:
        """Return where a variable or an element stands, and its type; raises ``ValueError`` for an unknown name."""
        if isinstance(target, ir.Var):
            slot = self.variable(target.name)
            assert not isinstance(slot, Typed), "only scalars that are never assigned are values"
            return slot
        if target.array not in self.memories:
            raise ValueError(f"the kernel has no memory {target.array}")
        base, memory = self.memories[target.array]
        (index,) = target.indices
        element = llvm_type(memory.element)
        return self.function.element(base, self.index(index), element), memory.element

    def variable(self, name: str) -> tuple[Value, ScalarType] | Typed:
        """Return where a scalar stands, and its type, or its value; raises ``ValueError`` for an unknown name."""
        for scope in reversed(self.scopes):
            found = scope.get(name)
            if found is not None:
                return found
        raise ValueError(f"the kernel has no variable {name}")

    def index(self, expr: ir.Expr) -> Value:
        """Return an index or an offset as ``i64``: its sign decides how it is widened."""
        value = self.value(expr)
        return self.convert(value, ScalarType.LONG if promoted(value.type).signed else ScalarType.UNSIGNED_LONG)

    def truth(self, expr: ir.Expr) -> Value:
        """Lower an expression to an ``i1``: whether it differs from zero."""
        match expr:
            case ir.Binary(op=op, left=left, right=right) if op in ir.COMPARISONS:
                return self._compare(op, self.value(left), self.value(right))
            case ir.Binary(op=op, left=left, right=right) if op in ir.LOGICAL:
                return self._short_circuit(op, left, right)
            case ir.Unary(op="!", operand=operand):
                return self._inverted(self.truth(operand))
            case _:
                return self._is_nonzero(self.value(expr))

    def _is_nonzero(self, value: Typed) -> Value:
        zero = constant(value.value.type, 0)
        # A NaN differs from zero.
        return self.function.compare("fcmp une" if value.type.floating else "icmp ne", value.value, zero)

    def _inverted(self, value: Value) -> Value:
        return self.function.binary("xor", value, constant(value.type, -1))

    def _short_circuit(self, op: str, left: ir.Expr, right: ir.Expr) -> Value:
        function = self.function
        first = self.truth(left)
        start, more, join = function.block, function.new_block("right"), function.new_block("join")
        function.choose(first, *((more, join) if op == "&&" else (join, more)))
        function.go_to(more)
        with function.region():
            second = self.truth(right)
        end = function.block
        function.branch(join)
        function.go_to(join)
        return function.phi(I1, ((constant(I1, int(op == "||")), start), (second, end)))

    def _conditional(self, expr: ir.Conditional) -> Typed:
        type_ = common_type(expr.then.type, expr.otherwise.type)
        test = self.truth(expr.condition)
        function = self.function
        yes, no, join = (function.new_block(name) for name in ("yes", "no", "join"))
        function.choose(test, yes, no)
        incoming = []
        for block, arm in ((yes, expr.then), (no, expr.otherwise)):
            function.go_to(block)
            with function.region():
                value = self.convert(self.value(arm), type_)
            incoming.append((value, function.block))
            function.branch(join)
        function.go_to(join)
        return Typed(function.phi(llvm_type(type_), incoming), type_)

    def _unary(self, expr: ir.Unary) -> Typed:
        if expr.op == "!":
            return Typed(self.function.cast("zext", self.truth(expr), I32), INT)
        operand = self.value(expr.operand)
        type_ = promoted(operand.type)
        value = self.convert(operand, type_)
        match expr.op:
            case "+":
                return Typed(value, type_)
            case "-" if type_.floating:
                return Typed(self.function.pure(value.type, f"fneg {value.type} {value.text}"), type_)
            case "-":
                zero = constant(value.type, 0)
                return Typed(self.function.binary(f"sub{_wrapping(type_)}", zero, value), type_)
            case "~":
                return Typed(self._inverted(value), type_)
            case _:
                raise ValueError(f"unary operator {expr.op}")

    def _compare(self, op: str, left: Typed, right: Typed) -> Value:
        type_ = common_type(left.type, right.type)
        first, second = self.convert(left, type_), self.convert(right, type_)
        name = _CONDITIONS[op]
        if type_.floating:
            # Only "differs" holds of what is not a number.
            condition = f"fcmp {'u' if op == '!=' else 'o'}{name}"
        elif op in ("==", "!="):
            condition = f"icmp {name}"
        else:
            condition = f"icmp {'s' if type_.signed else 'u'}{name}"
        return self.function.compare(condition, first, second)

    def arithmetic(self, op: str, left: Typed, right: Typed) -> Typed:
        """Compute ``left op right`` in the type that C gives it; no comparison."""
        shift = op in ("<<", ">>")
        type_ = promoted(left.type) if shift else common_type(left.type, right.type)
        first, second = self.convert(left, type_), self.convert(right, type_)
        if type_.floating:
            name = _FLOATING[op]
        elif op in _WRAPPING:
            name = f"{_WRAPPING[op]}{_wrapping(type_)}"
        else:
            name = _BITS.get(op) or (_SIGNED if type_.signed else _UNSIGNED)[op]
        return Typed(self.function.binary(name, first, second), type_)

    def _call(self, expr: ir.Call) -> Typed:
        if expr.name == SHUFFLE:
            return self._shuffle(expr)
        if expr.name == OFFSET:
            return Typed(self.convert(self.value(expr.arguments[0]), expr.type), expr.type)
        if expr.name == ALIGNED:
            return Typed(self._aligned(), expr.type)
        if expr.name == QUOTIENT:
            return self._quotient(expr)
        if expr.name == WARPS:
            return Typed(constant(I32, 1), expr.type)
        signature = SIGNATURES.get(expr.name)
        if signature is None:
            raise ValueError(f"unknown function {expr.name}")
        values = [
            self.convert(self.value(argument), type_)
            for argument, type_ in zip(expr.arguments, signature.parameters, strict=True)
        ]
        result = signature.result
        if expr.name in OF_SMALL:
            return Typed(self._of_small(expr.name, values[0]), result)
        name = expr.name.removesuffix("f") if result is ScalarType.FLOAT else expr.name
        types = [value.type for value in values]
        if name.startswith("__"):  # the same bits
            return Typed(self.function.cast("bitcast", values[0], llvm_type(result)), result)
        if name in ("abs", "labs", "llabs"):
            function = self.module.declare(f"llvm.abs.i{8 * result.size}", types[0], (types[0], I1))
            values.append(constant(I1, 0))
        elif name == "fdim":
            return Typed(self._positive_difference(*values), result)
        elif name in _INTRINSICS:
            function = self.module.declare(f"llvm.{_INTRINSICS[name]}.f{8 * result.size}", types[0], types)
        else:
            function = self.module.declare(expr.name, llvm_type(result), types, "nounwind readnone")
        return Typed(self.function.call(function, values), result)

    def _of_small(self, name: str, value: Value) -> Value:
        """Convert the bits of a small floating-point number to a ``float``, or back."""
        build = self.function
        match name:
            case "metafork_from_half":
                return build.cast("fpext", build.cast("bitcast", value, "half"), FLOAT)
            case "metafork_to_half":
                near = build.cast("bitcast", build.cast("fptrunc", value, "half"), "i16")
                return near if self.target.triple.startswith("nvptx") else self._unless_nan(value, near)
            case "metafork_from_bfloat16":
                wide = build.binary("shl", build.cast("zext", value, I32), constant(I32, 16))
                return build.cast("bitcast", wide, FLOAT)
        bits = build.cast("bitcast", value, I32)
        odd = build.binary("and", build.binary("lshr", bits, constant(I32, 16)), constant(I32, 1))
        rounded = build.binary("add", build.binary("add", bits, odd), constant(I32, 0x7FFF))
        return self._unless_nan(value, build.cast("trunc", build.binary("lshr", rounded, constant(I32, 16)), "i16"))

    def _unless_nan(self, value: Value, near: Value) -> Value:
        """Return the bits of a small floating-point number, of a NaN those that NVIDIA's conversions give."""
        return self.function.select(self.function.compare("fcmp uno", value, value), constant("i16", 0x7FFF), near)

    def _quotient(self, expr: ir.Call) -> Typed:
        """Divide the place of a thread: exactly, or by an approximation that is as good, which nvcc is given."""
        place, length = expr.arguments
        if not self.target.unroll:
            return self.value(ir.Cast(expr.type, ir.Binary("/", place, length, place.type)))
        single = ScalarType.FLOAT
        middle = self.function.binary("fadd", self.convert(self.value(place), single), constant(FLOAT, 0.5))
        divide = self.module.declare("llvm.nvvm.div.approx.f", FLOAT, (FLOAT, FLOAT))
        quotient = self.function.call(divide, (middle, self.convert(self.value(length), single)))
        return Typed(self.convert(Typed(quotient, single), expr.type), expr.type)

    def _aligned(self) -> Value:
        """Return whether all global memories begin where vectors may."""
        build, bits = self.function, constant(I64, 0)
        for base, memory in self.memories.values():
            if memory.space is Space.GLOBAL:
                bits = build.binary("or", bits, build.cast("ptrtoint", base, I64))
        rest = build.binary("and", bits, constant(I64, VECTOR_BYTES - 1))
        return build.cast("zext", build.compare("icmp eq", rest, constant(I64, 0)), I32)

    def _shuffle(self, expr: ir.Call) -> Typed:
        value, lane = (self.value(argument) for argument in expr.arguments)
        if value.type.size not in (4, 8):
            raise ValueError(f"a shuffle of {value.type.size} bytes")
        build, bits = self.function, f"i{8 * value.type.size}"
        source = self.convert(lane, INT)
        word = build.cast("bitcast", value.value, bits) if value.type.floating else value.value
        if value.type.size == 4:
            result = self.target.shuffle(self, word, source)
        else:
            upper = build.binary("lshr", word, constant(bits, 32))
            halves = (build.cast("trunc", half, I32) for half in (word, upper))
            low, high = (build.cast("zext", self.target.shuffle(self, half, source), bits) for half in halves)
            result = build.binary("or", low, build.binary("shl", high, constant(bits, 32)))
        if value.type.floating:
            result = build.cast("bitcast", result, llvm_type(value.type))
        return Typed(result, value.type)

    def _positive_difference(self, left: Value, right: Value) -> Value:
        """``fdim``: the difference where it is positive or not a number, else zero."""
        at_most = self.function.compare("fcmp ole", left, right)
        return self.function.select(at_most, constant(left.type, 0.0), self.function.binary("fsub", left, right))

    def convert(self, value: Typed, type_: ScalarType) -> Value:
        """Convert a value as C does: modulo 2^n to unsigned types, towards zero from floating types."""
        source = value.type
        if source is type_:
            return value.value
        if type_ is ScalarType.BOOL:
            operation = "zext"
            value = Typed(self._is_nonzero(value), type_)
        elif source.floating and type_.floating:
            operation = "fpext" if type_.size > source.size else "fptrunc"
        elif source.floating:
            operation = "fptosi" if type_.signed else "fptoui"
        elif type_.floating:
            operation = "sitofp" if source.signed else "uitofp"
        elif value.value.constant is not None:
            return constant(llvm_type(type_), value.value.constant)
        elif source.size == type_.size:
            return value.value
        elif source.size > type_.size:
            operation = "trunc"
        else:
            operation = "sext" if source.signed else "zext"
        return self.function.cast(operation, value.value, llvm_type(type_))


def _wrapping(type_: ScalarType) -> str:
    """Signed arithmetic never overflows in C; unsigned arithmetic wraps."""
    return " nsw" if type_.signed else ""
