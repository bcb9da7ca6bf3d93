"""Expressions of a kernel as LLVM values: C's types, conversions and order of evaluation.

The half of ``metafork.llvm.llvm_ir`` that knows C's expressions; statements and memories are the other half.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

from llvmlite import ir

from metafork.ir.arithmetic.exact_constants import floating_value
from metafork.ir.arithmetic.math_functions import SIGNATURES
from metafork.ir.arithmetic.types import ScalarType, common_type, promoted
from metafork.ir.kernel import ALIGNED, OFFSET, QUOTIENT, SHUFFLE, VECTOR_BYTES, Memory, Space
from metafork.ir.program import (
    COMPARISONS,
    LOGICAL,
    Binary,
    Call,
    Cast,
    Conditional,
    Element,
    Expr,
    FloatConst,
    IntConst,
    Unary,
    Var,
)
from metafork.lazy_dataclass import dataclass
from metafork.llvm.targets import SPECIAL_REGISTERS, Target

INT = ScalarType.INT
_I1, _I8, _I32, _I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
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


@dataclass(frozen=True, slots=True)
class Typed:
    """A value with its C type; ``bool`` is an ``i8`` that is 0 or 1, as it is in memory."""

    value: ir.Value
    type: ScalarType


def llvm_type(type_: ScalarType) -> ir.Type:
    """Return the LLVM type of a C type."""
    match type_:
        case ScalarType.FLOAT:
            return ir.FloatType()
        case ScalarType.DOUBLE:
            return ir.DoubleType()
        case _:
            return ir.IntType(8 * type_.size)


def constant_of(value: IntConst | FloatConst) -> int | float:
    """Return a constant as LLVM is given it."""
    return value.value if isinstance(value, IntConst) else floating_value(value.text, value.type)


def alignment(target: Var | Element) -> int | None:
    """Return the alignment of the first of elements that are accessed together, in bytes; ``None``: its type's."""
    if isinstance(target, Var) or target.part is None or target.part.place:
        return None
    return target.part.lanes * target.type.size


class ExpressionLowering:
    """Puts the instructions of expressions; knows the scalars in scope and the memories."""

    def __init__(self, target: Target, module: ir.Module) -> None:
        self.target, self.module = target, module
        self.externals: dict[str, ir.Function] = {}
        self.scopes: list[dict[str, tuple[ir.Value, ScalarType]]] = [{}]
        self.memories: dict[str, tuple[ir.Value, Memory]] = {}
        self.function: ir.Function
        self.builder: ir.IRBuilder

    def external(self, name: str, result: ir.Type, parameters: Sequence[ir.Type]) -> ir.Function:
        """Return the declaration of a function, made at its first use."""
        if name not in self.externals:
            self.externals[name] = ir.Function(self.module, ir.FunctionType(result, tuple(parameters)), name)
        return self.externals[name]

    def value(self, expr: Expr) -> Typed:
        """Lower an expression to a value of the type that C gives it."""
        match expr:
            case IntConst(value=value, type=type_):
                return Typed(ir.Constant(llvm_type(type_), value), type_)
            case FloatConst(text=text, type=type_):
                return Typed(ir.Constant(llvm_type(type_), floating_value(text, type_)), type_)
            case Var(name=name) if name in SPECIAL_REGISTERS:
                return Typed(self.target.special_register(self, name), ScalarType.UNSIGNED_INT)
            case Var() | Element():
                address, type_ = self.address(expr)
                return Typed(self.builder.load(address, align=alignment(expr), typ=llvm_type(type_)), type_)
            case Unary():
                return self._unary(expr)
            case Binary(op=op) if op in COMPARISONS or op in LOGICAL:
                return Typed(self.builder.zext(self.truth(expr), _I32), INT)
            case Binary(op=op, left=left, right=right):
                return self.arithmetic(op, self.value(left), self.value(right))
            case Conditional():
                return self._conditional(expr)
            case Cast(type=type_, operand=operand):
                return Typed(self.convert(self.value(operand), type_), type_)
            case Call():
                return self._call(expr)
            case _:
                assert_never(expr)

    def address(self, target: Var | Element) -> tuple[ir.Value, ScalarType]:
        """Return where a variable or an element stands, and its type; raises ``ValueError`` for an unknown name."""
        if isinstance(target, Var):
            for scope in reversed(self.scopes):
                if target.name in scope:
                    slot, type_ = scope[target.name]
                    return slot, type_
            raise ValueError(f"the kernel has no variable {target.name}")
        if target.array not in self.memories:
            raise ValueError(f"the kernel has no memory {target.array}")
        base, memory = self.memories[target.array]
        (index,) = target.indices
        element = llvm_type(memory.element)
        address = self.builder.gep(base, (self.index(index),), inbounds=True, source_etype=element)
        return address, memory.element

    def index(self, expr: Expr) -> ir.Value:
        """Return an index or an offset as ``i64``: its sign decides how it is widened."""
        value = self.value(expr)
        return self.convert(value, ScalarType.LONG if promoted(value.type).signed else ScalarType.UNSIGNED_LONG)

    def truth(self, expr: Expr) -> ir.Value:
        """Lower an expression to an ``i1``: whether it differs from zero."""
        match expr:
            case Binary(op=op, left=left, right=right) if op in COMPARISONS:
                return self._compare(op, self.value(left), self.value(right))
            case Binary(op=op, left=left, right=right) if op in LOGICAL:
                return self._short_circuit(op, left, right)
            case Unary(op="!", operand=operand):
                return self.builder.not_(self.truth(operand))
            case _:
                return self._is_nonzero(self.value(expr))

    def _is_nonzero(self, value: Typed) -> ir.Value:
        zero = ir.Constant(value.value.type, 0)
        if value.type.floating:
            # A NaN differs from zero.
            return self.builder.fcmp_unordered("!=", value.value, zero)
        return self.builder.icmp_unsigned("!=", value.value, zero)

    def _short_circuit(self, op: str, left: Expr, right: Expr) -> ir.Value:
        first = self.truth(left)
        start = self.builder.block
        more = self.function.append_basic_block("right")
        join = self.function.append_basic_block("join")
        self.builder.cbranch(first, *((more, join) if op == "&&" else (join, more)))
        self.builder.position_at_end(more)
        second = self.truth(right)
        end = self.builder.block
        self.builder.branch(join)
        self.builder.position_at_end(join)
        phi = self.builder.phi(_I1)
        phi.add_incoming(ir.Constant(_I1, int(op == "||")), start)
        phi.add_incoming(second, end)
        return phi

    def _conditional(self, expr: Conditional) -> Typed:
        type_ = common_type(expr.then.type, expr.otherwise.type)
        test = self.truth(expr.condition)
        blocks = [self.function.append_basic_block(name) for name in ("yes", "no", "join")]
        self.builder.cbranch(test, blocks[0], blocks[1])
        incoming = []
        for block, arm in zip(blocks, (expr.then, expr.otherwise), strict=False):
            self.builder.position_at_end(block)
            value = self.convert(self.value(arm), type_)
            incoming.append((value, self.builder.block))
            self.builder.branch(blocks[2])
        self.builder.position_at_end(blocks[2])
        phi = self.builder.phi(llvm_type(type_))
        for value, block in incoming:
            phi.add_incoming(value, block)
        return Typed(phi, type_)

    def _unary(self, expr: Unary) -> Typed:
        if expr.op == "!":
            return Typed(self.builder.zext(self.truth(expr), _I32), INT)
        operand = self.value(expr.operand)
        type_ = promoted(operand.type)
        value = self.convert(operand, type_)
        match expr.op:
            case "+":
                return Typed(value, type_)
            case "-" if type_.floating:
                return Typed(self.builder.fneg(value), type_)
            case "-":
                zero = ir.Constant(value.type, 0)
                return Typed(self.builder.sub(zero, value, flags=_wrapping(type_)), type_)
            case "~":
                return Typed(self.builder.not_(value), type_)
            case _:
                raise ValueError(f"unary operator {expr.op}")

    def _compare(self, op: str, left: Typed, right: Typed) -> ir.Value:
        type_ = common_type(left.type, right.type)
        first, second = self.convert(left, type_), self.convert(right, type_)
        if type_.floating:
            compare = self.builder.fcmp_unordered if op == "!=" else self.builder.fcmp_ordered
        else:
            compare = self.builder.icmp_signed if type_.signed else self.builder.icmp_unsigned
        return compare(op, first, second)

    def arithmetic(self, op: str, left: Typed, right: Typed) -> Typed:
        """Compute ``left op right`` in the type that C gives it; no comparison."""
        shift = op in ("<<", ">>")
        type_ = promoted(left.type) if shift else common_type(left.type, right.type)
        first, second = self.convert(left, type_), self.convert(right, type_)
        build: Any = self.builder
        if type_.floating:
            name = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}[op]
            return Typed(getattr(build, name)(first, second), type_)
        if op in ("+", "-", "*"):
            name = {"+": "add", "-": "sub", "*": "mul"}[op]
            return Typed(getattr(build, name)(first, second, flags=_wrapping(type_)), type_)
        signed = {"/": "sdiv", "%": "srem", ">>": "ashr"}
        unsigned = {"/": "udiv", "%": "urem", ">>": "lshr"}
        either = {"<<": "shl", "&": "and_", "|": "or_", "^": "xor"}
        name = ((signed if type_.signed else unsigned) | either)[op]
        return Typed(getattr(build, name)(first, second), type_)

    def _call(self, expr: Call) -> Typed:
        if expr.name == SHUFFLE:
            return self._shuffle(expr)
        if expr.name == OFFSET:
            return Typed(self.convert(self.value(expr.arguments[0]), expr.type), expr.type)
        if expr.name == ALIGNED:
            return Typed(self._aligned(), expr.type)
        if expr.name == QUOTIENT:
            place, length = expr.arguments
            return self.value(Cast(expr.type, Binary("/", place, length, place.type)))
        signature = SIGNATURES.get(expr.name)
        if signature is None:
            raise ValueError(f"unknown function {expr.name}")
        values = [
            self.convert(self.value(argument), type_)
            for argument, type_ in zip(expr.arguments, signature.parameters, strict=True)
        ]
        result = signature.result
        name = expr.name.removesuffix("f") if result is ScalarType.FLOAT else expr.name
        types = [value.type for value in values]
        if name in ("abs", "labs", "llabs"):
            function = self.external(f"llvm.abs.i{8 * result.size}", types[0], (types[0], _I1))
            values.append(ir.Constant(_I1, 0))
        elif name == "fdim":
            return Typed(self._positive_difference(*values), result)
        elif name in _INTRINSICS:
            function = self.external(f"llvm.{_INTRINSICS[name]}.f{8 * result.size}", types[0], types)
        else:
            function = self.external(expr.name, llvm_type(result), types)
            function.attributes.add("nounwind")
            function.attributes.add("readnone")
        return Typed(self.builder.call(function, values), result)

    def _aligned(self) -> ir.Value:
        """Return whether all global memories begin where vectors may."""
        bits: ir.Value = ir.Constant(_I64, 0)
        for base, memory in self.memories.values():
            if memory.space is Space.GLOBAL:
                bits = self.builder.or_(bits, self.builder.ptrtoint(base, _I64))
        rest = self.builder.and_(bits, ir.Constant(_I64, VECTOR_BYTES - 1))
        return self.builder.zext(self.builder.icmp_unsigned("==", rest, ir.Constant(_I64, 0)), _I32)

    def _shuffle(self, expr: Call) -> Typed:
        value, lane = (self.value(argument) for argument in expr.arguments)
        if value.type.size not in (4, 8):
            raise ValueError(f"a shuffle of {value.type.size} bytes")
        build, bits = self.builder, ir.IntType(8 * value.type.size)
        source = self.convert(lane, INT)
        word = build.bitcast(value.value, bits) if value.type.floating else value.value
        if value.type.size == 4:
            result = self.target.shuffle(self, word, source)
        else:
            halves = (build.trunc(word, _I32), build.trunc(build.lshr(word, ir.Constant(bits, 32)), _I32))
            low, high = (build.zext(self.target.shuffle(self, half, source), bits) for half in halves)
            result = build.or_(low, build.shl(high, ir.Constant(bits, 32)))
        return Typed(build.bitcast(result, llvm_type(value.type)) if value.type.floating else result, value.type)

    def _positive_difference(self, left: ir.Value, right: ir.Value) -> ir.Value:
        """``fdim``: the difference where it is positive or not a number, else zero."""
        at_most = self.builder.fcmp_ordered("<=", left, right)
        return self.builder.select(at_most, ir.Constant(left.type, 0.0), self.builder.fsub(left, right))

    def convert(self, value: Typed, type_: ScalarType) -> ir.Value:
        """Convert a value as C does: modulo 2^n to unsigned types, towards zero from floating types."""
        source = value.type
        build, wanted = self.builder, llvm_type(type_)
        if source is type_:
            return value.value
        if type_ is ScalarType.BOOL:
            return build.zext(self._is_nonzero(value), _I8)
        if source.floating and type_.floating:
            return build.fpext(value.value, wanted) if type_.size > source.size else build.fptrunc(value.value, wanted)
        if source.floating:
            return build.fptosi(value.value, wanted) if type_.signed else build.fptoui(value.value, wanted)
        if type_.floating:
            return build.sitofp(value.value, wanted) if source.signed else build.uitofp(value.value, wanted)
        if isinstance(value.value, ir.Constant):
            return ir.Constant(wanted, value.value.constant)
        if source.size == type_.size:
            return value.value
        if source.size > type_.size:
            return build.trunc(value.value, wanted)
        return build.sext(value.value, wanted) if source.signed else build.zext(value.value, wanted)


def _wrapping(type_: ScalarType) -> tuple[str, ...]:
    """Signed arithmetic never overflows in C; unsigned arithmetic wraps."""
    return ("nsw",) if type_.signed else ()
