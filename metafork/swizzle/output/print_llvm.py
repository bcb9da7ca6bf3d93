"""LLVM IR for NVPTX, and PTX: the kernel that ``print_cuda`` prints as CUDA, for elements of 32 bits.

    v3 = shuffle v1 from lane (lane + 1) % 8   -->   call float @llvm.nvvm.shfl.sync.idx.f32(-1, v1, lane', 6175)

The signature is that of the CUDA kernel: the inputs, the output, the number of tiles as 64 bits; the symbol is the
plain name of the code.  Every thread of a warp takes part in every shuffle: a group without a tile works on the last
one and stores nothing.  Guarded loads read element 0 of the tile where the guard fails and drop it, so that threads
part only at the stores.  No fast-math flag is set: products and sums are rounded one by one.
"""

from __future__ import annotations

from math import prod
from typing import assert_never

from llvmlite import ir

from metafork.ir.arithmetic.types import ScalarType
from metafork.llvm.ptx_target import TRIPLE, emit_ptx, optimize
from metafork.swizzle.model.index import Binary, Choose, Compare, Index, Name, Number, interval, reduce, to_text
from metafork.swizzle.model.names import parameter_name
from metafork.swizzle.output.instructions import (
    Combine,
    Given,
    Instruction,
    Integral,
    Load,
    NotLowerableError,
    Put,
    Select,
    Shuffle,
    Sync,
    ThreadCode,
    Zero,
)
from metafork.swizzle.output.print_cuda import WARP

ELEMENTS = (ScalarType.FLOAT, ScalarType.INT)
"""What a shuffle moves at once; wider elements would take two."""

_I1, _I32, _I64 = (ir.IntType(bits) for bits in (1, 32, 64))
_GLOBAL, _SHARED = ir.PointerType(addrspace=1), ir.PointerType(addrspace=3)
# Dynamic shared memory: as many elements as the CUDA kernel's comment says, for each group of threads.
_SHARED_NAME = "swizzle_shared"
_BITWISE = frozenset("^&|")


def print_llvm(codes: list[ThreadCode], element: ScalarType = ScalarType.FLOAT) -> str:
    """Return a module, not yet optimized, with the kernel of every code; names must differ.

    Raises ``NotLowerableError`` for groups of threads that do not divide a warp, elements that are not of 32 bits, and
    bit operators on floating-point elements.
    """
    module = ir.Module("swizzle")
    module.triple = TRIPLE
    for code in codes:
        _require(code, element)
        kernel = _Kernel(module, code, element)
        if code.results:
            kernel.build_device_function()
        else:
            kernel.build()
    return str(module)


def print_ptx(codes: list[ThreadCode], element: ScalarType = ScalarType.FLOAT, target: str = "sm_80") -> str:
    """Return optimized PTX of the kernels; raises as ``print_llvm`` and ``metafork.llvm.ptx_target.emit_ptx``."""
    return emit_ptx(optimize(print_llvm(codes, element), target=target), target)


def usual_element(codes: list[ThreadCode]) -> ScalarType:
    """Return ``float``, or ``int`` where bits are combined, which floating-point numbers do not allow."""
    return ScalarType.INT if any(_bit_operators(code) for code in codes) else ScalarType.FLOAT


def _bit_operators(code: ThreadCode) -> list[str]:
    return sorted({one.op for one in code.instructions if isinstance(one, Combine)} & _BITWISE)


def _require(code: ThreadCode, element: ScalarType) -> None:
    if code.lanes > WARP or WARP % code.lanes != 0:
        raise NotLowerableError(f"{code.lanes} threads do not fit into a warp of {WARP}; shuffles stay within a warp")
    if element not in ELEMENTS:
        raise NotLowerableError(f"a shuffle moves 32 bits, and an element of type {element.spelling} is not that")
    operators = _bit_operators(code)
    if operators and element is ScalarType.FLOAT:
        raise NotLowerableError(f"'{operators[0]}' combines bits, which elements of type float do not allow")


class _Kernel:
    """Builds one kernel; ``values[n]`` is what instruction ``n`` defines."""

    def __init__(self, module: ir.Module, code: ThreadCode, element: ScalarType) -> None:
        self.module, self.code = module, code
        self.element = ir.FloatType() if element is ScalarType.FLOAT else _I32
        self.floating = element is ScalarType.FLOAT
        self.ranges = code.ranges
        pointers = [parameter_name(one.name) for one in code.inputs]
        given = [f"given_{name}_{number}" for name, count in code.given for number in range(count)]
        staged = [f"staged_{name}" for name, _ in code.staged]
        self.parameters = [*given, *pointers, *staged, "lane"] if code.results else [*pointers, "out", "tiles"]
        types = {"tiles": _I64, "lane": _I32, **dict.fromkeys(given, self.element)}
        if code.results:
            types |= dict.fromkeys([*staged, *(parameter_name(one.name) for one in code.inputs if one.shared)], _SHARED)
        kind = ir.FunctionType(
            ir.LiteralStructType([self.element] * len(code.stores)) if code.results else ir.VoidType(),
            [types.get(name, _GLOBAL) for name in self.parameters],
        )
        self.function = ir.Function(module, kind, code.name)
        self.function.attributes.add("nounwind")
        if not code.results:
            self.function.calling_convention = "ptx_kernel"
        for argument, name in zip(self.function.args, self.parameters, strict=True):
            argument.name = name
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.values: list[ir.Value | None] = []
        self.tiles: dict[str, ir.Value] = {}
        self.known: dict[Index, ir.Value] = {}

    def build(self) -> None:
        """Emit the whole function."""
        builder, code = self.builder, self.code
        thread, block, size = (self._register(name) for name in ("tid", "ctaid", "ntid"))
        self.known[Name("lane")] = builder.urem(thread, ir.Constant(_I32, code.lanes))
        threads_before = builder.mul(builder.zext(block, _I64), builder.zext(size, _I64))
        flat = builder.add(threads_before, builder.zext(thread, _I64))
        group = builder.udiv(flat, ir.Constant(_I64, code.lanes))
        *pointers, out, tiles = self.function.args
        active = builder.icmp_signed("<", group, tiles)
        tile = builder.select(active, group, builder.sub(tiles, ir.Constant(_I64, 1)))
        mine, before = self._group_memory(thread), 0
        for literal, pointer in zip(code.inputs, pointers, strict=True):
            self.tiles[literal.name] = self._tile(pointer, tile, literal.step)
            if literal.shared:
                size = prod(literal.shape)
                self.tiles[literal.name] = self._copied(self.tiles[literal.name], self._element(mine, before), size)
                before += size
        if before:
            self._synchronize()
        for name, count in code.staged:
            self.tiles[name] = self._element(mine, before)
            before += count
        for instruction in code.instructions:
            self.values.append(self._value(instruction))
        places = [self._place(self._tile(out, tile, code.output_size), store.index) for store in code.stores]
        with builder.if_then(active):
            for place, store in zip(places, code.stores, strict=True):
                builder.store(self.values[store.value], place, align=4)
        builder.ret_void()

    def build_device_function(self) -> None:
        """Emit a function that takes registers and gives a structure of them."""
        arguments = dict(zip(self.parameters, self.function.args, strict=True))
        self.function.attributes.add("alwaysinline")
        self.known[Name("lane")] = arguments["lane"]
        self.tiles = {one.name: arguments[parameter_name(one.name)] for one in self.code.inputs}
        self.tiles |= {name: arguments[f"staged_{name}"] for name, _ in self.code.staged}
        for instruction in self.code.instructions:
            if isinstance(instruction, Given):
                self.values.append(arguments[f"given_{instruction.array}_{instruction.number}"])
            else:
                self.values.append(self._value(instruction))
        result = ir.Constant(self.function.ftype.return_type, ir.Undefined)
        for number, store in enumerate(self.code.stores):
            result = self.builder.insert_value(result, self.values[store.value], number)
        self.builder.ret(result)

    def _external(self, name: str, result: ir.Type, parameters: tuple[ir.Type, ...]) -> ir.Function:
        found = self.module.globals.get(name)
        return found or ir.Function(self.module, ir.FunctionType(result, parameters), name)

    def _register(self, name: str) -> ir.Value:
        return self.builder.call(self._external(f"llvm.nvvm.read.ptx.sreg.{name}.x", _I32, ()), ())

    def _tile(self, pointer: ir.Value, tile: ir.Value, step: int) -> ir.Value:
        start = self.builder.mul(tile, ir.Constant(_I64, step))
        return self.builder.gep(pointer, (start,), inbounds=True, source_etype=self.element)

    def _element(self, pointer: ir.Value, offset: int | ir.Value) -> ir.Value:
        at = ir.Constant(_I32, offset) if isinstance(offset, int) else offset
        return self.builder.gep(pointer, (at,), inbounds=True, source_etype=self.element)

    def _group_memory(self, thread: ir.Value) -> ir.Value:
        """Return where the shared memory of the thread's group starts."""
        elements = self.code.shared_elements
        if not elements:
            return ir.Constant(_SHARED, None)
        memory = self.module.globals.get(_SHARED_NAME)
        if memory is None:
            memory = ir.GlobalVariable(self.module, ir.ArrayType(ir.IntType(8), 0), _SHARED_NAME, addrspace=3)
            memory.linkage = "external"
            memory.align = 16
            memory.type = _SHARED  # what it points to is forgotten, as LLVM itself has done
        group = self.builder.udiv(thread, ir.Constant(_I32, self.code.lanes))
        return self._element(memory, self.builder.mul(group, ir.Constant(_I32, elements)))

    def _copied(self, tile: ir.Value, target: ir.Value, size: int) -> ir.Value:
        """Copy an input's tile to shared memory, one element a thread at a time; return the copy."""
        builder = self.builder
        for start in range(0, size, self.code.lanes):
            at = builder.add(self.known[Name("lane")], ir.Constant(_I32, start))
            with builder.if_then(builder.icmp_signed("<", at, ir.Constant(_I32, size))):
                value = builder.load(self._element(tile, at), typ=self.element, align=4)
                builder.store(value, self._element(target, at), align=4)
        return target

    def _synchronize(self) -> None:
        barrier = self._external("llvm.nvvm.bar.warp.sync", ir.VoidType(), (_I32,))
        self.builder.call(barrier, (ir.Constant(_I32, -1),))

    def _place(self, tile: ir.Value, index: Index) -> ir.Value:
        offset = self.builder.sext(self._index(reduce(index, self.ranges)), _I64)
        return self.builder.gep(tile, (offset,), inbounds=True, source_etype=self.element)

    def _value(self, instruction: Instruction) -> ir.Value | None:
        """Emit an instruction; ``None`` for those that define nothing."""
        builder, zero = self.builder, ir.Constant(self.element, 0)
        match instruction:
            case Load(memory, index, None):
                return builder.load(self._place(self.tiles[memory], index), typ=self.element, align=4)
            case Load(memory, index, guard):
                assert guard is not None
                holds = self._truth(guard)
                # A tile has an element 0, so this thread need not leave the others for its guard.
                within = builder.select(holds, self._index(reduce(index, self.ranges)), ir.Constant(_I32, 0))
                offset = builder.sext(within, _I64)
                place = builder.gep(self.tiles[memory], (offset,), inbounds=True, source_etype=self.element)
                return builder.select(holds, builder.load(place, typ=self.element, align=4), zero)
            case Shuffle(value, lane):
                suffix = "f32" if self.floating else "i32"
                shuffle = self._external(
                    f"llvm.nvvm.shfl.sync.idx.{suffix}", self.element, (_I32, self.element, _I32, _I32)
                )
                # What CUDA makes of a width: the bits of the lane that stay the reader's own, and the last lane.
                group = (WARP - self.code.lanes) << 8 | WARP - 1
                source = self._index(reduce(lane, self.ranges))
                whole_warp = ir.Constant(_I32, -1)
                return builder.call(shuffle, (whole_warp, self.values[value], source, ir.Constant(_I32, group)))
            case Select(condition, yes, no):
                return builder.select(self._truth(condition), self.values[yes], self.values[no])
            case Zero():
                return zero
            case Integral(index):
                value = self._index(reduce(index, self.ranges))
                return builder.sitofp(value, self.element) if self.floating else value
            case Put(memory, index, value):
                builder.store(self.values[value], self._place(self.tiles[memory], index), align=4)
                return None
            case Sync():
                self._synchronize()
                return None
            case Given():
                raise AssertionError("a kernel is given no registers")
            case Combine(op, left, right):
                return self._combined(op, self.values[left], self.values[right])
            case _:
                assert_never(instruction)

    def _combined(self, op: str, left: ir.Value, right: ir.Value) -> ir.Value:
        builder = self.builder
        match op:
            case "+":
                return (builder.fadd if self.floating else builder.add)(left, right)
            case "*":
                return (builder.fmul if self.floating else builder.mul)(left, right)
            case "-":
                return (builder.fsub if self.floating else builder.sub)(left, right)
            case "max" | "min":
                compare = builder.fcmp_ordered if self.floating else builder.icmp_signed
                return builder.select(compare(">" if op == "max" else "<", left, right), left, right)
            case "^":
                return builder.xor(left, right)
            case "&":
                return builder.and_(left, right)
            case "|":
                return builder.or_(left, right)
            case _:
                raise NotLowerableError(f"there is no instruction for '{op}'")

    # Index expressions: 32 bits, as C computes them.

    def _truth(self, condition: Index) -> ir.Value:
        return self.builder.icmp_signed("!=", self._index(reduce(condition, self.ranges)), ir.Constant(_I32, 0))

    def _index(self, index: Index) -> ir.Value:
        if index not in self.known:
            self.known[index] = self._index_once(index)
        return self.known[index]

    def _index_once(self, index: Index) -> ir.Value:
        builder = self.builder
        match index:
            case Number(value):
                return ir.Constant(_I32, value)
            case Name(name):
                raise NotLowerableError(f"an index names '{name}', which a thread does not know")
            case Binary("/" | "%" as op, left, right):
                return self._floored(op, left, right)
            case Binary(op, left, right):
                operation = {"+": builder.add, "-": builder.sub, "*": builder.mul, "^": builder.xor}
                operation |= {"&": builder.and_, "|": builder.or_}
                return operation[op](self._index(left), self._index(right))
            case Compare("&&" | "||" as op, left, right):
                both = builder.and_ if op == "&&" else builder.or_
                return builder.zext(both(self._truth(left), self._truth(right)), _I32)
            case Compare(op, left, right):
                return builder.zext(builder.icmp_signed(op, self._index(left), self._index(right)), _I32)
            case Choose(condition, yes, no):
                return builder.select(self._truth(condition), self._index(yes), self._index(no))
            case _:
                assert_never(index)

    def _floored(self, op: str, left: Index, right: Index) -> ir.Value:
        """Divide, rounding towards minus infinity: a negative dividend is moved up by a multiple of the divisor."""
        builder = self.builder
        low = interval(left, self.ranges)[0]
        # Both sides of a choice are computed, so a divisor that may be zero is refused even where it is not used.
        if interval(right, self.ranges)[0] < 1 or (low < 0 and not isinstance(right, Number)):
            raise NotLowerableError(
                f"cannot print {to_text(Binary('/', left, right))}: the divisor must be a positive constant"
            )
        dividend, divisor = self._index(left), self._index(right)
        turns = 0
        if low < 0 and isinstance(right, Number):
            turns = -(low // right.value)
            dividend = builder.add(dividend, ir.Constant(_I32, turns * right.value))
        if op == "%":
            return builder.urem(dividend, divisor)
        return builder.sub(builder.udiv(dividend, divisor), ir.Constant(_I32, turns))
