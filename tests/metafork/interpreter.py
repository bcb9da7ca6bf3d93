"""Runs a ``Program`` on small arrays, checking what C leaves undefined: overflow, bounds, division by zero.

Blocks run in a shuffled order, and so do the threads of a phase; a strategy that relies on an order shows.
"""

import math
import operator
import random
from itertools import product

from metafork.analysis.exactness import with_exactness
from metafork.comprehensive.scheduled import scheduled_unit
from metafork.frontend import parse
from metafork.ir.arithmetic.evaluation import NoValueError, converted, fitted, operation
from metafork.ir.arithmetic.types import common_type
from metafork.ir.atomic_updates import updated
from metafork.ir.messages.source import Source
from metafork.ir.program import (
    Assign,
    Binary,
    BlockArray,
    Break,
    Call,
    Cast,
    Conditional,
    Continue,
    Declare,
    Element,
    FloatConst,
    For,
    If,
    IntConst,
    Phase,
    PrivateArray,
    Unary,
    Var,
    While,
)


class UndefinedBehaviourError(Exception):
    """The program did what C does not define."""


class _BreakError(Exception):
    pass


class _ContinueError(Exception):
    pass


MISSING = object()


def program(text):
    """Return the program of the first schedule of a text, with its directives applied."""
    return with_exactness(scheduled_unit(parse(Source("test.mf", text))).schedules[0].program)


def run(program, scalars, arrays, seed=0):
    """Run a program and return the interpreter; ``arrays`` map names to lists, which are changed."""
    interpreter = Interpreter(program, arrays, random.Random(seed))
    interpreter.run(dict(scalars))
    return interpreter


class Interpreter:
    def __init__(self, program, arrays, rng):
        self.program = program
        self.arrays = arrays
        self.rng = rng
        self.extents = {}
        self.block = self.thread = None
        self.phase = 0
        self.touches = {}

    def run(self, scalars):
        for derived in self.program.derived:
            scalars[derived.name] = self.converted(self.value(derived.definition, scalars), derived.type)
        for assumption in self.program.assumptions:
            assert self.value(assumption, scalars), "the parameters are outside the assumptions"
        for array in self.program.arrays:
            self.extents[array.name] = [self.value(extent, scalars) for extent in array.extents]
            assert len(self.arrays[array.name]) == math.prod(self.extents[array.name])
        blocks = list(product(*(range(self.value(loop.extent, scalars)) for loop in self.program.grid)))
        self.rng.shuffle(blocks)
        for block in blocks:
            self.block = block
            names = {loop.var: index for loop, index in zip(self.program.grid, block, strict=True)}
            self.body(self.program.body, [{**scalars, **names}])

    def body(self, body, scopes):
        scopes = [*scopes, {}]
        for stmt in body:
            self.statement(stmt, scopes)

    def statement(self, stmt, scopes):
        match stmt:
            case Declare(name=name, type=type_, value=value):
                scopes[-1][name] = MISSING if value is None else self.converted(self.value(value, scopes), type_)
            case Assign(target=target, op=op, value=value):
                new = self.value(value, scopes)
                if stmt.atomic:
                    new = self.value(updated(stmt), scopes)
                elif op:
                    new = self.value(Binary(op, target, value, _common(target, value)), scopes)
                self.store(target, self.converted(new, target.type), scopes)
            case If(condition=condition, then=then, otherwise=otherwise):
                self.body(then if self.value(condition, scopes) else otherwise, scopes)
            case For():
                self.loop(stmt, scopes)
            case While(condition=condition, body=body):
                self.loop(For(None, condition, None, body), scopes)
            case Break():
                raise _BreakError
            case Continue():
                raise _ContinueError
            case BlockArray(array=array) | PrivateArray(array=array):
                extents = [self.value(extent, scopes) for extent in array.extents]
                self.extents[array.name] = extents
                self.arrays[array.name] = [math.nan] * math.prod(extents)
            case Phase(threads=threads, body=body):
                points = list(product(*(range(self.value(loop.extent, scopes)) for loop in threads)))
                self.rng.shuffle(points)
                self.phase += 1
                for point in points:
                    self.thread = point
                    names = {loop.var: index for loop, index in zip(threads, point, strict=True)}
                    self.body(body, [*scopes, names])
            case _:
                raise TypeError(stmt)

    def loop(self, stmt, scopes):
        scopes = [*scopes, {}]
        if stmt.init is not None:
            self.statement(stmt.init, scopes)
        while stmt.condition is None or self.value(stmt.condition, scopes):
            try:
                self.body(stmt.body, scopes)
            except _BreakError:
                return
            except _ContinueError:
                pass
            if stmt.step is not None:
                self.statement(stmt.step, scopes)

    def store(self, target, value, scopes):
        if isinstance(target, Element):
            offset = self.offset(target, scopes)
            self.touch(target.array, offset, True)
            self.arrays[target.array][offset] = value
            return
        for scope in reversed(scopes):
            if target.name in scope:
                scope[target.name] = value
                return
        raise NameError(target.name)

    def touch(self, array, offset, writes):
        self.touches.setdefault((array, offset), set()).add((self.block, self.phase, self.thread, writes))

    def keeps_promise(self):
        """Say whether the run bore out what ``meta_for`` promises: no conflict of blocks, or of threads of a phase."""
        for touches in self.touches.values():
            if any(writes for *_, writes in touches):
                if len({block for block, *_ in touches}) > 1:
                    return False
                for _, phase, _, writes in touches:
                    if writes and len({thread for _, other, thread, _ in touches if other == phase}) > 1:
                        return False
        return True

    def offset(self, element, scopes):
        offset = 0
        for index, extent in zip(element.indices, self.extents[element.array], strict=True):
            number = self.value(index, scopes)
            if not 0 <= number < extent:
                raise UndefinedBehaviourError(f"{element.array}: index {number} of {extent}")
            offset = offset * extent + number
        return offset

    def value(self, expr, scopes):
        if isinstance(scopes, dict):
            scopes = [scopes]
        match expr:
            case IntConst(value=value):
                return value
            case FloatConst(text=text):
                return float(text.rstrip("fF"))
            case Var(name=name):
                found = next((scope[name] for scope in reversed(scopes) if name in scope), MISSING)
                if found is MISSING:
                    raise UndefinedBehaviourError(f"{name} has no value")
                return found
            case Element(array=array):
                offset = self.offset(expr, scopes)
                self.touch(array, offset, False)
                return self.arrays[array][offset]
            case Cast(type=type_, operand=operand):
                return self.converted(self.value(operand, scopes), type_)
            case Unary(op=op, operand=operand):
                value = self.value(operand, scopes)
                if op == "!":
                    return int(not value)
                return checked({"-": -value, "+": value, "~": ~value if op == "~" else 0}[op], expr.type)
            case Conditional(condition=condition, then=then, otherwise=otherwise):
                chosen = then if self.value(condition, scopes) else otherwise
                return self.converted(self.value(chosen, scopes), expr.type)
            case Call(name=name, arguments=arguments):
                return getattr(math, name.removesuffix("f"))(*(self.value(a, scopes) for a in arguments))
            case Binary(op="&&", left=left, right=right):
                return int(bool(self.value(left, scopes)) and bool(self.value(right, scopes)))
            case Binary(op="||", left=left, right=right):
                return int(bool(self.value(left, scopes)) or bool(self.value(right, scopes)))
            case Binary(left=left, right=right):
                return arithmetic(expr, self.value(left, scopes), self.value(right, scopes))
            case _:
                raise TypeError(expr)

    def converted(self, value, type_):
        if type_.floating:
            return float(value)
        return checked(int(value), type_)


def _common(target, value):
    return target.type if target.type.floating or not value.type.floating else value.type


def checked(value, type_):
    if type_.floating:
        return value
    try:
        return fitted(value, type_)
    except NoValueError as error:
        raise UndefinedBehaviourError(str(error)) from error


def arithmetic(expr, left, right):
    """Return the value of a binary operation, on floats as Python has it, on integers as C has it."""
    shift = expr.op in ("<<", ">>")
    type_ = expr.type if shift else common_type(expr.left.type, expr.right.type)
    if type_.floating:
        return _FLOATING[expr.op](left, right)
    try:
        if not shift:
            left, right = converted(left, type_), converted(right, type_)
        return operation(expr.op, left, right, type_)
    except NoValueError as error:
        raise UndefinedBehaviourError(str(error)) from error


_FLOATING = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "<": lambda a, b: int(a < b), ">": lambda a, b: int(a > b), "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b), "==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b),
}  # fmt: skip


def memories(program, scalars, seed):
    """Return random arrays for a program: floating ones hold numbers whose sums depend on their order."""
    scalars = dict(scalars)
    interpreter = Interpreter(program, {}, random.Random(seed))
    rng = random.Random(seed)
    for derived in program.derived:
        scalars[derived.name] = interpreter.value(derived.definition, scalars)
    arrays = {}
    for array in program.arrays:
        length = math.prod(interpreter.value(extent, scalars) for extent in array.extents)
        if array.element.floating:
            arrays[array.name] = [rng.uniform(-1, 1) * 10 ** rng.randrange(-8, 9) for _ in range(length)]
        else:
            arrays[array.name] = [rng.randrange(-100, 100) for _ in range(length)]
    return arrays


def results(program, scalars, seed=0):
    """Return the arrays after a run that starts from random ones."""
    arrays = memories(program, scalars, seed)
    run(program, scalars, arrays, seed + 1)
    return {array.name: arrays[array.name] for array in program.arrays}
