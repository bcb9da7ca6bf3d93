"""LLVM IR of a kernel for NVPTX, with exactly the meaning of its CUDA text compiled with ``-fmad=false``.

Every scalar is a stack slot (the optimizer makes registers of them), every expression is computed in the type that C
gives it: integer promotion and the usual arithmetic conversions, wrapping unsigned and non-wrapping signed arithmetic
(``nsw``), truncating division, short-circuit ``&&``, ``||`` and ``?:``.  No fast-math flag is ever set, so that
nothing is contracted or regrouped.  Global memories are ``ptr addrspace(1) noalias`` (``readonly`` where no statement
writes them, which lets the target read them through the non-coherent cache), the dynamic shared memory is one
external array in address space 3, and ``__syncthreads()`` is the aligned barrier intrinsic.

Functions of ``math.h`` that LLVM has as exact intrinsics become these; any other call stays a call of an external
function, which is enough to count registers, and ``metafork.ptx_target.emit_ptx`` refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from llvmlite import ir

from metafork.exact_constants import floating_value
from metafork.ir import (
    COMPARISONS,
    LOGICAL,
    Assign,
    Barrier,
    Binary,
    BlockArray,
    Break,
    Call,
    Cast,
    Conditional,
    Continue,
    Declare,
    Element,
    Expr,
    FloatConst,
    For,
    If,
    IntConst,
    Phase,
    Stmt,
    Unary,
    Var,
    While,
)
from metafork.kernel import Kernel, Memory, Space
from metafork.llvm_targets import SPECIAL_REGISTERS, Nvptx, Target, opaque
from metafork.math_functions import SIGNATURES
from metafork.types import ScalarType, common_type, promoted
from metafork.unroll_hints import unrolled_by_nvcc

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


def module_text(kernel: Kernel, target: Target | None = None) -> str:
    """Return the LLVM IR of one kernel as text, not yet optimized.

    Raises ``ValueError`` where the kernel form is violated: an unknown name, an ``Element`` with several indices, a
    ``Phase`` or a ``BlockArray``, a shared memory without offset, a private one without constant extent.
    """
    return str(Lowering(kernel, target or Nvptx()).module)


@dataclass(frozen=True, slots=True)
class _Typed:
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


class Lowering:
    """Builds the module of one kernel."""

    def __init__(self, kernel: Kernel, target: Target) -> None:
        self.kernel, self.target = kernel, target
        self.module = ir.Module(kernel.name)
        self.module.triple = target.triple
        self.externals: dict[str, ir.Function] = {}
        self.scopes: list[dict[str, tuple[ir.Value, ScalarType]]] = [{}]
        self.loops: list[tuple[ir.Block, ir.Block]] = []
        self.function: ir.Function = self._signature()
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.memories: dict[str, tuple[ir.Value, Memory]] = self._place_arguments()
        self._place_memories()
        self.body(kernel.body)
        if not self.builder.block.is_terminated:
            self.builder.ret_void()

    # The function and what it addresses.

    def _signature(self) -> ir.Function:
        pointers = [memory for memory in self.kernel.memories if memory.space is Space.GLOBAL]
        types = [*self.target.hidden, *(llvm_type(argument.type) for argument in self.kernel.scalars)]
        types += [ir.PointerType(addrspace=self.target.global_space) for _ in pointers]
        function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), types), self.kernel.name)
        function.calling_convention = self.target.calling_convention
        function.attributes.add("nounwind")
        for argument, memory in zip(function.args[len(types) - len(pointers) :], pointers, strict=True):
            argument.add_attribute("noalias")
            argument.attributes.align = memory.element.size
            if memory.read_only:
                # llvmlite knows the attribute of functions only.
                set.add(argument.attributes, "readonly")
        return function

    def _place_arguments(self) -> dict[str, tuple[ir.Value, Memory]]:
        values = list(self.function.args[len(self.target.hidden) :])
        names = [argument.name for argument in self.kernel.scalars]
        pointers = [memory for memory in self.kernel.memories if memory.space is Space.GLOBAL]
        for value, name in zip(values, [*names, *(memory.name for memory in pointers)], strict=True):
            value.name = name
        for argument, value in zip(self.kernel.scalars, values, strict=False):
            self.builder.store(value, self._slot(argument.name, argument.type))
        return {memory.name: (value, memory) for memory, value in zip(pointers, values[len(names) :], strict=True)}

    def _place_memories(self) -> None:
        base = None
        for memory in self.kernel.memories:
            match memory.space:
                case Space.GLOBAL:
                    continue
                case Space.SHARED:
                    if memory.offset is None:
                        raise ValueError(f"the shared memory {memory.name} has no offset")
                    base = self.target.shared_base(self) if base is None else base
                    offset = self._index(memory.offset)
                    address = self.builder.gep(base, (offset,), inbounds=True, source_etype=_I8)
                case Space.PRIVATE:
                    if not isinstance(memory.extent, IntConst):
                        raise ValueError(f"the extent of the private memory {memory.name} is no constant")
                    array = ir.ArrayType(llvm_type(memory.element), memory.extent.value)
                    address = opaque(self.builder.alloca(array, name=memory.name), 0)
                case _:
                    assert_never(memory.space)
            self.memories[memory.name] = (address, memory)

    def _slot(self, name: str, type_: ScalarType) -> ir.Value:
        with self.builder.goto_entry_block():
            slot = opaque(self.builder.alloca(llvm_type(type_), name=name), 0)
        self.scopes[-1][name] = (slot, type_)
        return slot

    def external(self, name: str, result: ir.Type, parameters: Sequence[ir.Type]) -> ir.Function:
        """Return the declaration of a function, made at its first use."""
        if name not in self.externals:
            self.externals[name] = ir.Function(self.module, ir.FunctionType(result, tuple(parameters)), name)
        return self.externals[name]

    # Statements.

    def body(self, stmts: tuple[Stmt, ...]) -> None:
        """Lower statements in a scope of their own."""
        self.scopes.append({})
        for stmt in stmts:
            self.statement(stmt)
        self.scopes.pop()

    def statement(self, stmt: Stmt) -> None:
        """Lower one statement."""
        match stmt:
            case Declare(name=name, type=type_, value=value):
                # C starts the scope before the initializer, but reading the name there would read nothing.
                initial = None if value is None else self.convert(self.value(value), type_)
                slot = self._slot(name, type_)
                if initial is not None:
                    self.builder.store(initial, slot)
            case Assign():
                self._assign(stmt)
            case If(condition=condition, then=then, otherwise=otherwise):
                self._if(condition, then, otherwise)
            case For():
                self._for(stmt)
            case While(condition=condition, body=inner):
                self._loop(condition, None, inner)
            case Break():
                self._jump(self.loops[-1][0])
            case Continue():
                self._jump(self.loops[-1][1])
            case Barrier():
                self.target.barrier(self)
            case BlockArray() | Phase():
                raise ValueError(f"a kernel has no {type(stmt).__name__}")
            case _:
                assert_never(stmt)

    def _jump(self, block: ir.Block) -> None:
        self.builder.branch(block)
        self.builder.position_at_end(self.function.append_basic_block("dead"))

    def _assign(self, stmt: Assign) -> None:
        address, type_ = self._address(stmt.target)
        if stmt.op:
            # The address is computed once, as C's compound assignment does.
            right = self.value(stmt.value)
            left = _Typed(self.builder.load(address, typ=llvm_type(type_)), type_)
            result = self._arithmetic(stmt.op, left, right)
        else:
            result = self.value(stmt.value)
        self.builder.store(self.convert(result, type_), address)

    def _if(self, condition: Expr, then: tuple[Stmt, ...], otherwise: tuple[Stmt, ...]) -> None:
        test = self.truth(condition)
        blocks = [self.function.append_basic_block(name) for name in ("then", "else", "endif")]
        self.builder.cbranch(test, blocks[0], blocks[1] if otherwise else blocks[2])
        for block, stmts in zip(blocks, (then, otherwise), strict=False):
            self.builder.position_at_end(block)
            self.body(stmts)
            if not self.builder.block.is_terminated:
                self.builder.branch(blocks[2])
        self.builder.position_at_end(blocks[2])

    def _for(self, loop: For) -> None:
        self.scopes.append({})
        if loop.init is not None:
            self.statement(loop.init)
        hint = self.target.unroll if unrolled_by_nvcc(loop, {one.name for one in self.kernel.scalars}) else 0
        self._loop(loop.condition, loop.step, loop.body, hint)
        self.scopes.pop()

    def _loop(self, condition: Expr | None, step: Assign | None, stmts: tuple[Stmt, ...], unroll: int = 0) -> None:
        head, inside, again, after = (
            self.function.append_basic_block(name) for name in ("loop", "body", "step", "endloop")
        )
        self.builder.branch(head)
        self.builder.position_at_end(head)
        if condition is None:
            self.builder.branch(inside)
        else:
            self.builder.cbranch(self.truth(condition), inside, after)
        self.builder.position_at_end(inside)
        self.loops.append((after, again))
        self.body(stmts)
        self.loops.pop()
        self.builder.branch(again)
        self.builder.position_at_end(again)
        if step is not None:
            self.statement(step)
        back = self.builder.branch(head)
        if unroll:
            back.set_metadata("llvm.loop", self._unroll_hint(unroll))
        self.builder.position_at_end(after)

    def _unroll_hint(self, count: int) -> ir.MDValue:
        hint = self.module.add_metadata(["llvm.loop.unroll.count", ir.Constant(_I32, count)])
        loop = ir.MDValue(self.module, [hint], name=str(len(self.module.metadata)))
        # The first operand of a loop's metadata is the node itself, which makes it unlike that of any other loop.
        loop.operands = (loop, hint)
        return loop

    # Expressions.

    def value(self, expr: Expr) -> _Typed:
        """Lower an expression to a value of the type that C gives it."""
        match expr:
            case IntConst(value=value, type=type_):
                return _Typed(ir.Constant(llvm_type(type_), value), type_)
            case FloatConst(text=text, type=type_):
                return _Typed(ir.Constant(llvm_type(type_), floating_value(text, type_)), type_)
            case Var(name=name) if name in SPECIAL_REGISTERS:
                return _Typed(self.target.special_register(self, name), ScalarType.UNSIGNED_INT)
            case Var() | Element():
                address, type_ = self._address(expr)
                return _Typed(self.builder.load(address, typ=llvm_type(type_)), type_)
            case Unary():
                return self._unary(expr)
            case Binary(op=op) if op in COMPARISONS or op in LOGICAL:
                return _Typed(self.builder.zext(self.truth(expr), _I32), INT)
            case Binary(op=op, left=left, right=right):
                return self._arithmetic(op, self.value(left), self.value(right))
            case Conditional():
                return self._conditional(expr)
            case Cast(type=type_, operand=operand):
                return _Typed(self.convert(self.value(operand), type_), type_)
            case Call():
                return self._call(expr)
            case _:
                assert_never(expr)

    def _address(self, target: Var | Element) -> tuple[ir.Value, ScalarType]:
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
        address = self.builder.gep(base, (self._index(index),), inbounds=True, source_etype=element)
        return address, memory.element

    def _index(self, expr: Expr) -> ir.Value:
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

    def _is_nonzero(self, value: _Typed) -> ir.Value:
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

    def _conditional(self, expr: Conditional) -> _Typed:
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
        return _Typed(phi, type_)

    def _unary(self, expr: Unary) -> _Typed:
        if expr.op == "!":
            return _Typed(self.builder.zext(self.truth(expr), _I32), INT)
        operand = self.value(expr.operand)
        type_ = promoted(operand.type)
        value = self.convert(operand, type_)
        match expr.op:
            case "+":
                return _Typed(value, type_)
            case "-" if type_.floating:
                return _Typed(self.builder.fneg(value), type_)
            case "-":
                zero = ir.Constant(value.type, 0)
                return _Typed(self.builder.sub(zero, value, flags=_wrapping(type_)), type_)
            case "~":
                return _Typed(self.builder.not_(value), type_)
            case _:
                raise ValueError(f"unary operator {expr.op}")

    def _compare(self, op: str, left: _Typed, right: _Typed) -> ir.Value:
        type_ = common_type(left.type, right.type)
        first, second = self.convert(left, type_), self.convert(right, type_)
        if type_.floating:
            compare = self.builder.fcmp_unordered if op == "!=" else self.builder.fcmp_ordered
        else:
            compare = self.builder.icmp_signed if type_.signed else self.builder.icmp_unsigned
        return compare(op, first, second)

    def _arithmetic(self, op: str, left: _Typed, right: _Typed) -> _Typed:
        shift = op in ("<<", ">>")
        type_ = promoted(left.type) if shift else common_type(left.type, right.type)
        first, second = self.convert(left, type_), self.convert(right, type_)
        build: Any = self.builder
        if type_.floating:
            name = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}[op]
            return _Typed(getattr(build, name)(first, second), type_)
        if op in ("+", "-", "*"):
            name = {"+": "add", "-": "sub", "*": "mul"}[op]
            return _Typed(getattr(build, name)(first, second, flags=_wrapping(type_)), type_)
        signed = {"/": "sdiv", "%": "srem", ">>": "ashr"}
        unsigned = {"/": "udiv", "%": "urem", ">>": "lshr"}
        either = {"<<": "shl", "&": "and_", "|": "or_", "^": "xor"}
        name = ((signed if type_.signed else unsigned) | either)[op]
        return _Typed(getattr(build, name)(first, second), type_)

    def _call(self, expr: Call) -> _Typed:
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
            return _Typed(self._positive_difference(*values), result)
        elif name in _INTRINSICS:
            function = self.external(f"llvm.{_INTRINSICS[name]}.f{8 * result.size}", types[0], types)
        else:
            function = self.external(expr.name, llvm_type(result), types)
            function.attributes.add("nounwind")
            function.attributes.add("readnone")
        return _Typed(self.builder.call(function, values), result)

    def _positive_difference(self, left: ir.Value, right: ir.Value) -> ir.Value:
        """``fdim``: the difference where it is positive or not a number, else zero."""
        at_most = self.builder.fcmp_ordered("<=", left, right)
        return self.builder.select(at_most, ir.Constant(left.type, 0.0), self.builder.fsub(left, right))

    def convert(self, value: _Typed, type_: ScalarType) -> ir.Value:
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
