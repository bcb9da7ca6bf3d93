"""LLVM IR of a kernel for a GPU, with exactly the meaning of its CUDA text compiled with ``-fmad=false``.

Every scalar is a stack slot, of which the optimizer makes registers (where only LLVM reads the text, those that are
never assigned are values), every expression is computed in the type that C gives it: integer promotion and the usual
arithmetic conversions, wrapping unsigned and non-wrapping signed arithmetic (``nsw``), truncating division,
short-circuit ``&&``, ``||`` and ``?:``.  No fast-math flag is ever set, so that nothing is contracted or regrouped.
Global memories are ``ptr addrspace(1) noalias`` (``readonly`` where no statement writes them, which lets the target
read them through the non-coherent cache), the dynamic shared memory is one external array in address space 3, tables
are constants of the module in address space 4, and ``__syncthreads()`` is the aligned barrier intrinsic.

Functions of ``math.h`` that LLVM has as exact intrinsics become these; any other call stays a call of an external
function, which is enough to count registers, and ``metafork.llvm.ptx_target.emit_ptx`` refuses.
"""

from __future__ import annotations

from typing import assert_never

from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import Kernel, Memory, Space
from metafork.ir.rewriting import assigned_variables
from metafork.llvm.builder import I8, I32, VOID, Block, Function, Value, constant, pointer
from metafork.llvm.expressions import ExpressionLowering, Typed, alignment, constant_of, llvm_type
from metafork.llvm.targets import Nvptx, Target
from metafork.llvm.unroll_hints import unroll_factor

INT = ScalarType.INT


def module_text(kernel: Kernel, target: Target | None = None, *, named: bool = True) -> str:
    """Return the LLVM IR of one kernel as text, not yet optimized.

    Without ``named``, kernels that differ in the names of scalars and arrays alone have one text.

    Raises ``ValueError`` where the kernel form is violated: an unknown name, an ``Element`` with several indices, a
    declaration of an array, a ``Phase``, a shared memory without offset, a private one without constant extent.
    """
    lowering = Lowering(kernel, target or Nvptx(), named=named)
    return lowering.module.text(lowering.function)


class Lowering(ExpressionLowering):
    """Builds the module of one kernel."""

    def __init__(self, kernel: Kernel, target: Target, *, named: bool) -> None:
        head = f"{target.calling_convention} {VOID}".lstrip()
        bounds = "" if kernel.bounds is None else target.bounds(*kernel.bounds)
        super().__init__(target, Function(head, kernel.name, f"nounwind {bounds}".rstrip(), named=named))
        self.kernel = kernel
        self._assigned = assigned_variables(kernel.body)
        self.loops: list[tuple[Block, Block]] = []
        self._place_arguments()
        self._place_memories()
        self.body(kernel.body)
        if not self.function.block.closed:
            self.function.leave("ret void")

    # The function and what it addresses.

    def _place_arguments(self) -> None:
        for number, type_ in enumerate(self.target.hidden):
            self.function.argument(f".hidden{number}", type_)
        values = [self.function.argument(one.name, llvm_type(one.type)) for one in self.kernel.scalars]
        for memory in self.kernel.memories:
            if memory.space is Space.GLOBAL:
                told = f"noalias {'readonly ' if memory.read_only else ''}align {memory.element.size}"
                address = self.function.argument(memory.name, pointer(self.target.global_space), told)
                self.memories[memory.name] = (address, memory)
        for argument, value in zip(self.kernel.scalars, values, strict=True):
            self._declare(argument.name, argument.type, value)

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
                    address = self.function.element(base, offset, I8)
                case Space.PRIVATE:
                    if not isinstance(memory.extent, ir.IntConst):
                        raise ValueError(f"the extent of the private memory {memory.name} is no constant")
                    array = f"[{memory.extent.value} x {llvm_type(memory.element)}]"
                    address = self.function.slot(array, memory.name, self.target.private_space)
                case Space.CONSTANT:
                    address = self._table(memory)
                case _:
                    assert_never(memory.space)
            self.memories[memory.name] = (address, memory)

    def _table(self, memory: Memory) -> Value:
        """Return the address of a table, a constant of the module."""
        element = llvm_type(memory.element)
        values = ", ".join(f"{element} {constant(element, constant_of(value)).text}" for value in memory.values)
        array = f"[{len(memory.values)} x {element}] [{values}]"
        return self.module.variable(
            f"metafork_table_{memory.name}",
            f"internal {{space}}constant {array}, align {memory.element.size}",
            self.target.constant_space,
        )

    def _declare(self, name: str, type_: ScalarType, initial: Value | None) -> None:
        if initial is not None and not self.function.named and name not in self._assigned:
            self.scopes[-1][name] = Typed(initial, type_)
            return
        with self.function.in_entry():
            slot = self.function.slot(llvm_type(type_), name, self.target.private_space)
        self.scopes[-1][name] = (slot, type_)
        if initial is not None:
            self.function.store(initial, slot)

    # Statements.

    def body(self, stmts: tuple[ir.Stmt, ...]) -> None:
        """Lower statements in a scope of their own."""
        self.scopes.append({})
        for stmt in stmts:
            self.statement(stmt)
        self.scopes.pop()

    def statement(self, stmt: ir.Stmt) -> None:
        """Lower one statement."""
        match stmt:
            case ir.Declare(name=name, type=type_, value=value):
                # C starts the scope before the initializer, but reading the name there would read nothing.
                self._declare(name, type_, None if value is None else self.convert(self.value(value), type_))
            case ir.Assign():
                self._assign(stmt)
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                self._if(condition, then, otherwise)
            case ir.For():
                self._for(stmt)
            case ir.While(condition=condition, body=inner):
                self._loop(condition, None, inner)
            case ir.Break():
                self._jump(self.loops[-1][0])
            case ir.Continue():
                self._jump(self.loops[-1][1])
            case ir.Barrier():
                self.target.barrier(self)
            case ir.BlockArray() | ir.PrivateArray() | ir.Phase():
                raise ValueError(f"a kernel has no {type(stmt).__name__}")
            case _:
                assert_never(stmt)

    def _jump(self, block: Block) -> None:
        self.function.branch(block)
        self.function.go_to(self.function.new_block("dead"))

    def _assign(self, stmt: ir.Assign) -> None:
        address, type_ = self.address(stmt.target)
        if stmt.atomic:
            value = self.convert(self.value(stmt.value), type_)
            if stmt.op == "*":
                self._atomic_product(address, value)
                return
            operator = stmt.op
            if operator == "-" and type_.floating:  # devices add
                operator, value = "+", self.function.result(value.type, f"fneg {value.type} {value.text}")
            operation = f"atomicrmw {_atomic_operation(operator, type_)} {address.type} {address.text}"
            self.function.result(value.type, f"{operation}, {value.type} {value.text} monotonic")
            return
        if stmt.op:
            # The address is computed once, as C's compound assignment does.
            right = self.value(stmt.value)
            left = Typed(self.function.load(address, llvm_type(type_)), type_)
            result = self.arithmetic(stmt.op, left, right)
        else:
            result = self.value(stmt.value)
        self.function.store(self.convert(result, type_), address, alignment(stmt.target))

    def _atomic_product(self, address: Value, factor: Value) -> None:
        """Put a loop that multiplies an element at once: LLVM has no instruction for it."""
        function = self.function
        # What was found last stands in a slot, as a variable would.
        with function.in_entry():
            seen = function.slot(factor.type, "seen", self.target.private_space)
        again, after = function.new_block("again"), function.new_block("done")
        function.store(function.load(address, factor.type), seen)
        function.branch(again)
        function.go_to(again)
        expected = function.load(seen, factor.type)
        product = function.binary("mul", expected, factor)
        type_ = factor.type
        values = f"{type_} {expected.text}, {type_} {product.text}"
        pair = function.result(
            f"{{ {type_}, i1 }}", f"cmpxchg {address.type} {address.text}, {values} monotonic monotonic"
        )
        function.store(function.result(type_, f"extractvalue {pair.type} {pair.text}, 0"), seen)
        function.choose(function.result("i1", f"extractvalue {pair.type} {pair.text}, 1"), after, again)
        function.go_to(after)

    def _if(self, condition: ir.Expr, then: tuple[ir.Stmt, ...], otherwise: tuple[ir.Stmt, ...]) -> None:
        test, function = self.truth(condition), self.function
        yes = function.new_block("then")
        no = function.new_block("else") if otherwise else None
        after = function.new_block("endif")
        function.choose(test, yes, no or after)
        for block, stmts in ((yes, then), (no, otherwise)):
            if block is not None:
                function.go_to(block)
                with function.region():
                    self.body(stmts)
                if not function.block.closed:
                    function.branch(after)
        function.go_to(after)

    def _for(self, loop: ir.For) -> None:
        self.scopes.append({})
        if loop.init is not None:
            self.statement(loop.init)
        factor = unroll_factor(loop, {one.name for one in self.kernel.scalars}, len(self.loops))
        hint = min(factor, self.target.unroll)
        self._loop(loop.condition, loop.step, loop.body, hint, whole=loop.copies == ir.WHOLE)
        self.scopes.pop()

    def _loop(
        self,
        condition: ir.Expr | None,
        step: ir.Assign | None,
        stmts: tuple[ir.Stmt, ...],
        unroll: int = 0,
        *,
        whole: bool = False,
    ) -> None:
        function = self.function
        head, inside, again, after = (function.new_block(name) for name in ("loop", "body", "step", "endloop"))
        function.branch(head)
        function.go_to(head)
        with function.region():
            if condition is None:
                function.branch(inside)
            else:
                function.choose(self.truth(condition), inside, after)
            function.go_to(inside)
            self.loops.append((after, again))
            with function.region():
                self.body(stmts)
            self.loops.pop()
            function.branch(again)
            function.go_to(again)
            if step is not None:
                self.statement(step)
        hint = self._unroll_hint(None if whole else unroll) if unroll or whole else ""
        function.branch(head, f", !llvm.loop {hint}" if hint else "")
        function.go_to(after)

    def _unroll_hint(self, count: int | None) -> str:
        """Return what asks for so many copies of a loop's body; without one, for as many as it can have iterations."""
        asks = '!"llvm.loop.unroll.enable"' if count is None else f'!"llvm.loop.unroll.count", {I32} {count}'
        return self.module.loop(asks)


def _atomic_operation(op: str, type_: ScalarType) -> str:
    """Return what LLVM calls the operation of an atomic update of an element of that type."""
    match op:
        case "+" if type_.floating:
            return "fadd"
        case "min" | "max":
            return op if type_.signed else f"u{op}"
        case _:
            return {"+": "add", "-": "sub", "&": "and", "|": "or", "^": "xor"}[op]
