"""Counts what the threads of one block do, by walking through the kernel form with numbers: for tests of counts."""

from collections import Counter
from contextlib import suppress
from itertools import product

from metafork.ir.arithmetic.evaluation import NoValueError, converted, integer_value
from metafork.ir.kernel import OFFSET, QUOTIENT, Space
from metafork.ir.program import Assign, Barrier, Call, Cast, Declare, Element, For, If, Var, binary, subexpressions
from metafork.ir.rewriting import map_expression
from tests.metafork.host_scalars import with_host_scalars

SECTOR_BYTES = 32


def count_block(kernel, numbers, block):
    """What the threads of block ``(x, y, z)`` do where the parameters have these numbers.

    Returns a counter of accesses by space, of barriers and of different sectors of global memory, all of the block.
    """
    values = with_host_scalars(kernel, numbers)
    extents = [integer_value(extent, values) for extent in kernel.block]
    grid = [integer_value(extent, values) for extent in kernel.grid]
    done, sectors = Counter(), set()
    for threads in product(*(range(extent) for extent in extents)):
        own = dict(values)
        for letter, thread, size, place, blocks in zip("xyz", threads, extents, block, grid, strict=True):
            own |= {f"threadIdx.{letter}": thread, f"blockDim.{letter}": size}
            own |= {f"blockIdx.{letter}": place, f"gridDim.{letter}": blocks}
        _Thread(kernel, own, done, sectors).run(kernel.body)
    done["sectors"] = len(sectors)
    return done


class _Thread:
    def __init__(self, kernel, values, done, sectors):
        self.memories = {memory.name: memory for memory in kernel.memories}
        self.values, self.done, self.sectors = values, done, sectors

    def run(self, body):
        for stmt in body:
            match stmt:
                case Declare(name=name, type=type_, value=value):
                    self.store(name, type_, value)
                case Assign(target=Var(name=name), op="", value=value):
                    self.store(name, stmt.target.type, value)
                case Assign(target=Var(name=name), op=op, value=value):
                    self.read(value)
                    if stmt.target.type.integer:
                        self.values[name] += {"+": 1, "-": -1}[op] * self.number(value)
                case Assign(target=target, op=op, value=value):
                    self.read(value)
                    for _ in range(2 if op else 1):
                        self.access(target)
                case If(condition=condition, otherwise=otherwise, widened=True):
                    self.read(condition)
                    self.run(otherwise)
                case If(condition=condition, then=then, otherwise=otherwise):
                    self.read(condition)
                    self.run(then if self.number(condition) else otherwise)
                case For(init=init, condition=condition, step=step, body=inner):
                    self.run((init,))
                    while self.number(condition):
                        self.run((*inner, step))
                case Barrier():
                    self.done["barriers"] += 1
                case _:
                    raise AssertionError(stmt)

    def store(self, name, type_, value):
        self.read(value)
        self.values.pop(name, None)
        if value is not None and type_.integer:
            with suppress(NoValueError):  # it is read from memory
                self.values[name] = converted(self.number(value), type_)

    def number(self, expr):
        return integer_value(map_expression(expr, _plain), self.values)

    def read(self, expr):
        for part in () if expr is None else subexpressions(expr):
            self.read(part)
        if isinstance(expr, Element):
            self.access(expr)

    def access(self, element):
        memory = self.memories[element.array]
        self.done[memory.space] += 1
        if memory.space is Space.GLOBAL:
            self.sectors.add((element.array, self.number(element.indices[0]) * memory.element.size // SECTOR_BYTES))


def _plain(expr):
    match expr:
        case Call(name=name, arguments=(index,)) if name == OFFSET:
            return Cast(expr.type, index)
        case Call(name=name, arguments=(place, length)) if name == QUOTIENT:
            return Cast(expr.type, binary("/", place, length))
        case _:
            return None
