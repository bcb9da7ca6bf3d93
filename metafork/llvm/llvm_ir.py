"""LLVM IR of a kernel for a GPU, with exactly the meaning of its CUDA text compiled with ``-fmad=false``.

Every scalar is a stack slot (the optimizer makes registers of them), every expression is computed in the type that C
gives it: integer promotion and the usual arithmetic conversions, wrapping unsigned and non-wrapping signed arithmetic
(``nsw``), truncating division, short-circuit ``&&``, ``||`` and ``?:``.  No fast-math flag is ever set, so that
nothing is contracted or regrouped.  Global memories are ``ptr addrspace(1) noalias`` (``readonly`` where no statement
writes them, which lets the target read them through the non-coherent cache), the dynamic shared memory is one
external array in address space 3, tables are constants of the module in address space 4, and ``__syncthreads()`` is the
aligned barrier intrinsic.

Functions of ``math.h`` that LLVM has as exact intrinsics become these; any other call stays a call of an external
function, which is enough to count registers, and ``metafork.llvm.ptx_target.emit_ptx`` refuses.
"""

from __future__ import annotations

from typing import assert_never

from llvmlite import ir

from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import Kernel, Memory, Space
from metafork.ir.program import (
    Assign,
    Barrier,
    BlockArray,
    Break,
    Continue,
    Declare,
    Expr,
    For,
    If,
    IntConst,
    Phase,
    PrivateArray,
    Stmt,
    While,
)
from metafork.llvm.expressions import ExpressionLowering, Typed, alignment, constant_of, llvm_type
from metafork.llvm.targets import Nvptx, Target, opaque, stack_slot
from metafork.llvm.unroll_hints import unroll_factor

INT = ScalarType.INT
_I1, _I8, _I32, _I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))


def module_text(kernel: Kernel, target: Target | None = None) -> str:
    """Return the LLVM IR of one kernel as text, not yet optimized.

    Raises ``ValueError`` where the kernel form is violated: an unknown name, an ``Element`` with several indices, a
    declaration of an array, a ``Phase``, a shared memory without offset, a private one without constant extent.
    """
    return str(Lowering(kernel, target or Nvptx()).module)


class Lowering(ExpressionLowering):
    """Builds the module of one kernel."""

    def __init__(self, kernel: Kernel, target: Target) -> None:
        super().__init__(target, ir.Module(kernel.name))
        self.kernel = kernel
        self.module.triple = target.triple
        self.loops: list[tuple[ir.Block, ir.Block]] = []
        self.function = self._signature()
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.memories = self._place_arguments()
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
                    offset = self.index(memory.offset)
                    address = self.builder.gep(base, (offset,), inbounds=True, source_etype=_I8)
                case Space.PRIVATE:
                    if not isinstance(memory.extent, IntConst):
                        raise ValueError(f"the extent of the private memory {memory.name} is no constant")
                    array = ir.ArrayType(llvm_type(memory.element), memory.extent.value)
                    address = stack_slot(self, array, memory.name)
                case Space.CONSTANT:
                    address = self._table(memory)
                case _:
                    assert_never(memory.space)
            self.memories[memory.name] = (address, memory)

    def _table(self, memory: Memory) -> ir.Value:
        """Return the address of a table, a constant of the module."""
        element = llvm_type(memory.element)
        values = [ir.Constant(element, constant_of(value)) for value in memory.values]
        space = self.target.constant_space
        table = ir.GlobalVariable(
            self.module, ir.ArrayType(element, len(values)), f"metafork_table_{memory.name}", addrspace=space
        )
        table.linkage, table.global_constant, table.align = "internal", True, memory.element.size
        table.initializer = ir.Constant(table.value_type, values)
        return opaque(table, space)

    def _slot(self, name: str, type_: ScalarType) -> ir.Value:
        with self.builder.goto_entry_block():
            slot = stack_slot(self, llvm_type(type_), name)
        self.scopes[-1][name] = (slot, type_)
        return slot

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
            case BlockArray() | PrivateArray() | Phase():
                raise ValueError(f"a kernel has no {type(stmt).__name__}")
            case _:
                assert_never(stmt)

    def _jump(self, block: ir.Block) -> None:
        self.builder.branch(block)
        self.builder.position_at_end(self.function.append_basic_block("dead"))

    def _assign(self, stmt: Assign) -> None:
        address, type_ = self.address(stmt.target)
        if stmt.atomic:
            value = self.convert(self.value(stmt.value), type_)
            if stmt.op == "*":
                self._atomic_product(address, value)
                return
            self.builder.atomic_rmw(_atomic_operation(stmt.op, type_), address, value, "monotonic")
            return
        if stmt.op:
            # The address is computed once, as C's compound assignment does.
            right = self.value(stmt.value)
            left = Typed(self.builder.load(address, typ=llvm_type(type_)), type_)
            result = self.arithmetic(stmt.op, left, right)
        else:
            result = self.value(stmt.value)
        self.builder.store(self.convert(result, type_), address, align=alignment(stmt.target))

    def _atomic_product(self, address: ir.Value, factor: ir.Value) -> None:
        """Put a loop that multiplies an element at once: LLVM has no instruction for it."""
        entry, again, after = self.builder.block, *(self.function.append_basic_block(n) for n in ("again", "done"))
        first = self.builder.load(address, typ=factor.type)
        self.builder.branch(again)
        self.builder.position_at_end(again)
        expected = self.builder.phi(factor.type)
        expected.add_incoming(first, entry)
        product = self.builder.mul(expected, factor)
        found = self.builder.cmpxchg(address, expected, product, "monotonic", "monotonic")
        expected.add_incoming(self.builder.extract_value(found, 0), again)
        self.builder.cbranch(self.builder.extract_value(found, 1), after, again)
        self.builder.position_at_end(after)

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
        factor = unroll_factor(loop, {one.name for one in self.kernel.scalars}, len(self.loops))
        hint = min(factor, self.target.unroll)
        self._loop(loop.condition, loop.step, loop.body, hint, whole=loop.unrolled)
        self.scopes.pop()

    def _loop(
        self,
        condition: Expr | None,
        step: Assign | None,
        stmts: tuple[Stmt, ...],
        unroll: int = 0,
        *,
        whole: bool = False,
    ) -> None:
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
        if unroll or whole:
            back.set_metadata("llvm.loop", self._unroll_hint(None if whole else unroll))
        self.builder.position_at_end(after)

    def _unroll_hint(self, count: int | None) -> ir.MDValue:
        """Return what asks for so many copies of a loop's body; without one, for as many as it can have iterations."""
        words = ["llvm.loop.unroll.enable"] if count is None else ["llvm.loop.unroll.count", ir.Constant(_I32, count)]
        hint = self.module.add_metadata(words)
        loop = ir.MDValue(self.module, [hint], name=str(len(self.module.metadata)))
        # The first operand of a loop's metadata is the node itself, which makes it unlike that of any other loop.
        loop.operands = (loop, hint)
        return loop


def _atomic_operation(op: str, type_: ScalarType) -> str:
    """Return what LLVM calls the operation of an atomic update of an element of that type."""
    match op:
        case "min" | "max":
            return op if type_.signed else f"u{op}"
        case _:
            return {"+": "add", "-": "sub", "&": "and", "|": "or", "^": "xor"}[op]
