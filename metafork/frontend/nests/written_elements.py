"""Which elements of an array code surely has written, and whether it reads another one.

A walk through the statements of one thread: loops between numbers are walked one iteration after the other; others say
that a range is written, by the texts of its ends.  What may be written or not is not, so that *unknown* is never yes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from metafork.frontend.host.linear_indices import changed
from metafork.frontend.nests.shape import counter
from metafork.frontend.nests.written import Index, Path, Range, Written, values_of, with_number
from metafork.frontend.text import syntax
from metafork.frontend.text.free_names import free_names
from metafork.frontend.text.jumps import own_jumps

Number = Callable[[syntax.Expression], int | None]
"""The value of an expression of constants, ``None`` for any other one."""


class Callee(Protocol):
    """A function of the file: what it takes, and its body."""

    @property
    def parameters(self) -> tuple[syntax.Declarator, ...]:
        """The parameters."""

    @property
    def body(self) -> syntax.Block:
        """The statements."""


Find = Callable[[str], Callee | None]
"""The function of a name; ``None`` where the file has none."""

MOST_STEPS = 20_000
"""Statements that are walked for one array: a product of two 16 by 16 matrices."""


class OwnArray(Struct, frozen=True):
    """An array with its extents, or a structure with its members."""

    name: str
    shape: tuple[int, ...]
    members: tuple[str, ...] = ()


class NotKnownError(Exception):
    """An element may be read that this iteration has not written, or something is done that is not understood."""


class Walk:
    """Walks through the code of a thread; ``hidden`` are names that the schedule declares.

    Of a loop whose ends are no numbers, the range of its variable is known by their texts.
    """

    def __init__(self, array: OwnArray, functions: Find, number: Number, hidden: set[str]) -> None:
        self._name = array.name
        self._shape = array.shape
        self._all: list[Path] = [(one,) for one in array.members] or [*product(*map(range, array.shape))]
        self._functions = functions
        self._number = number
        self._loops: dict[str, tuple[Index, Index]] = {}
        self._hidden = hidden
        self._steps = 0
        self._calls = 0

    def statement(self, statement: syntax.Statement, written: Written, values: Mapping[str, int]) -> Written:
        """Return what is written behind a statement; raises ``NotKnownError``."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise NotKnownError
        match statement:
            case syntax.Block(items=items):
                for item in items:
                    written = self.statement(item, written, values)
                hidden = {
                    one.name for item in items if isinstance(item, syntax.Declaration) for one in item.declarators
                }
                return written.without(hidden)
            case syntax.Declaration(declarators=declarators):
                if any(one.name in (self._name, *values, *self._loops) for one in declarators):
                    raise NotKnownError  # it hides the one that is meant
                return self._declared(declarators, written, values)
            case syntax.ExpressionStatement(expression=expression):
                return self._evaluated((expression,), written, values)
            case syntax.IfStatement(condition=condition, then=then, otherwise=otherwise):
                return self._branch(condition, then, otherwise, written, values)
            case syntax.ForStatement():
                return self._for(statement, written, values)
            case syntax.WhileStatement(condition=condition, body=body, is_do=is_do):
                written = written.without(self._changed(statement))
                if not is_do:
                    self._evaluated((condition,), written, values)
                behind = self.statement(body, written, values)
                self._evaluated((condition,), behind if not own_jumps(body) else written, values)
                return behind if is_do and not own_jumps(body) else written
            case syntax.Jump(value=value):
                return written if value is None else self._evaluated((value,), written, values)
            case syntax.Empty():
                return written
            case _:
                if self._name in free_names(statement) or isinstance(statement, syntax.Opaque):
                    raise NotKnownError
                return written

    def _declared(
        self, declarators: tuple[syntax.Declarator, ...], written: Written, values: Mapping[str, int]
    ) -> Written:
        for one in declarators:
            plain = one if one.braces is None else replace(one, value=None)  # the values in braces stand for it
            held = syntax.direct_expressions(syntax.Declaration((plain,), one.span))
            written = self._evaluated(held, written.without({one.name}), values)
            if one.value is not None and not one.type.extents and not one.type.pointers:
                written = with_number(written, one.name, self._index(one.value, values_of(written, values)))
        return written

    def _branch(
        self,
        condition: syntax.Expression,
        then: syntax.Statement,
        otherwise: syntax.Statement | None,
        written: Written,
        values: Mapping[str, int],
    ) -> Written:
        written = self._evaluated((condition,), written, values)
        known = self._index(condition, values_of(written, values))
        if isinstance(known, int):
            taken = then if known else otherwise
            return written if taken is None else self.statement(taken, written, values)
        ways = [written if otherwise is None else self.statement(otherwise, written, values)]
        ways.append(self.statement(then, written, values))
        # Who leaves by a jump of its own is not behind the statement.
        kept = [way for way, one in zip(ways, (otherwise, then), strict=True) if one is None or not _leaves(one)]
        found = kept[0] if kept else ways[0]
        for way in kept[1:]:
            found = found.both(way)
        return found

    def _for(self, loop: syntax.ForStatement, written: Written, values: Mapping[str, int]) -> Written:
        init = loop.init
        if isinstance(init, syntax.Declaration):
            written = self._declared(init.declarators, written, values)
        elif init is not None:
            written = self._evaluated((init,), written, values)
        counted = counter(loop)
        jumps = own_jumps(loop.body)
        if counted is None or isinstance(loop.step, syntax.Comma) or counted[0] in self._changed(loop.body):
            written = written.without(self._changed(loop))
            inside = self.statement(loop.body, written, values)
            rest = [part for part in (loop.condition, loop.step) if part is not None]
            self._evaluated(rest, written if jumps else inside, values)
            return written
        variable, start, end, step = counted
        low, high, by = (self._index(one, values_of(written, values)) for one in (start, end, step))
        written = written.without({variable} if not jumps else self._changed(loop))
        if isinstance(low, int) and isinstance(high, int) and isinstance(by, int) and by:
            for value in range(low, high, by):
                behind = self.statement(loop.body, written, {**values, variable: value})
                written = written if jumps else behind
            return written.without({variable})
        around = {name: value for name, value in values.items() if name != variable}
        written = written.without(self._changed(loop) | {variable})
        before = self._loops.get(variable)
        self._loops[variable] = (low, high)
        behind = self.statement(loop.body, written, around)
        self._loops.pop(variable)
        if before is not None:
            self._loops[variable] = before
        if jumps or by != 1 or _spoken(low, high) & self._changed(loop.body):
            return written
        gained = (one for one in behind.elements if one and one[-1] == variable)
        ranges = {Range(one[:-1], low, high) for one in gained if not any(variable == part for part in one[:-1])}
        found = replace(written, ranges=written.ranges | ranges)
        return found.without({variable})

    # --- expressions ------------------------------------------------------------------------------------------

    def _evaluated(
        self,
        expressions: tuple[syntax.Expression, ...] | list[syntax.Expression],
        written: Written,
        values: Mapping[str, int],
    ) -> Written:
        """Return what is written once expressions are evaluated; raises ``NotKnownError`` for a read of another."""
        for expression in expressions:
            targets = [] if not isinstance(expression, syntax.Assignment) else [expression.target]
            value = expression
            while isinstance(value, syntax.Assignment) and value.op == "=":
                targets.append(value.target)
                value = value.value
            plain = targets and isinstance(expression, syntax.Assignment) and expression.op == "="
            here = values_of(written, values)
            if not plain:
                written = self._read(expression, written, values)
            else:
                written = self._read(value, written, values)
                for target in targets:
                    path = self._path(target, here)
                    if path is None:
                        written = self._read(target, written, values)
                        continue
                    for index in _indices(target):
                        written = self._read(index, written, values)
                    written = self._with(written, path)
            written = self._stepped(expression, written, values)
        return written

    def _stepped(self, expression: syntax.Expression, written: Written, values: Mapping[str, int]) -> Written:
        """Return what is known once an expression has changed variables: those that it steps or sets to numbers."""
        known = values_of(written, values)
        found = written.without(changed([expression]))
        match expression:
            case syntax.Assignment(op="=", target=syntax.Name(name=name), value=value):
                return with_number(found, name, self._index(value, known))
            case syntax.Assignment(op="+=" | "-=" as op, target=syntax.Name(name=name), value=value):
                first, second = known.get(name, ""), self._index(value, known)
                both = isinstance(first, int) and isinstance(second, int)
                return with_number(found, name, _computed(op[0], int(first), int(second)) if both else "")
            case _:
                pass
        parts = list(syntax.walk(expression))
        for part in parts:
            if isinstance(part, syntax.Postfix | syntax.Prefix) and part.op in ("++", "--"):
                name = part.operand.name if isinstance(part.operand, syntax.Name) else ""
                named = sum(isinstance(one, syntax.Name) and one.name == name for one in parts)
                if name in known and named == 1 and not _may_skip(expression):
                    found = with_number(found, name, known[name] + (1 if part.op == "++" else -1))
        return found

    def _read(self, expression: syntax.Expression, written: Written, values: Mapping[str, int]) -> Written:
        """Look at all reads in an expression; calls may write the array that they get."""
        path = self._path(expression, values_of(written, values))
        if path is not None:
            if not self._has(written, path):
                raise NotKnownError
            return self._each(_indices(expression), written, values)
        match expression:
            case syntax.Name(name=name):
                if name == self._name and not written.whole:
                    raise NotKnownError
                return written
            case syntax.Prefix(op="sizeof"):
                return written
            case syntax.Prefix(op="&", operand=operand) if self._name in syntax.names_in(operand) and not written.whole:
                raise NotKnownError
            case syntax.Unsupported(tokens=tokens):
                if any(token.text == self._name for token in tokens):
                    raise NotKnownError
                return written
            case syntax.Ternary(condition=condition, then=then, otherwise=otherwise):
                written = self._read(condition, written, values)
                self._read(then, written, values)
                self._read(otherwise, written, values)
                return written
            case syntax.Infix(op="&&" | "||", left=left, right=right):
                written = self._read(left, written, values)
                self._read(right, written, values)
                return written
            case syntax.Invocation(callee=syntax.Name(name=called), arguments=arguments):
                return self._call(called, arguments, written, values)
            case _:
                return self._each(syntax.operands(expression), written, values)

    def _each(self, expressions: tuple[syntax.Expression, ...], written: Written, values: Mapping[str, int]) -> Written:
        for one in expressions:
            written = self._read(one, written, values)
        return written

    def _call(
        self, name: str, arguments: tuple[syntax.Expression, ...], written: Written, values: Mapping[str, int]
    ) -> Written:
        """Walk through a function of the file that gets the array as a whole."""
        given = [one for one in arguments if isinstance(one, syntax.Name) and one.name == self._name]
        written = self._each(tuple(one for one in arguments if one not in given), written, values)
        if not given:
            return written
        if name == "memset" and arguments[0] is given[0] and _is_size_of(arguments[-1], self._name):
            return replace(written, whole=True)
        function = self._functions(name)
        if function is None or len(given) > 1 or len(function.parameters) != len(arguments) or self._calls > 3:
            raise NotKnownError
        numbers: dict[str, int] = {}
        inner = ""
        for parameter, argument in zip(function.parameters, arguments, strict=True):
            value = self._index(argument, values_of(written, values))
            if argument is given[0]:
                inner = parameter.name
            elif isinstance(value, int) and parameter.name not in self._changed(function.body):
                numbers[parameter.name] = value
        own = replace(written, elements=_numbered(written.elements), ranges=frozenset(), numbers=frozenset())
        outer, self._name = self._name, inner
        loops, self._loops = self._loops, {}
        self._calls += 1
        items = function.body.items
        early = any("return" in own_jumps(item) for item in items[:-1]) or (
            bool(items) and not isinstance(items[-1], syntax.Jump) and "return" in own_jumps(items[-1])
        )
        behind = self.statement(function.body, own, numbers)
        self._name, self._loops = outer, loops
        self._calls -= 1
        if early:
            return written
        return replace(
            written, elements=written.elements | _numbered(behind.elements), whole=written.whole or behind.whole
        )

    def _path(self, expression: syntax.Expression, values: Mapping[str, int]) -> Path | None:
        """Return which element an expression is, with what is not known as empty; ``None`` where it is none."""
        steps: list[Index] = []
        while not isinstance(expression, syntax.Name):
            match expression:
                case syntax.Subscript(base=expression, index=index):
                    steps.append(self._index(index, values))
                case syntax.Member(base=expression, field=field, arrow=False):
                    steps.append(f".{field}")
                case syntax.Prefix(op="*", operand=syntax.Name() as expression):
                    steps.append(0)
                case _:
                    return None
        if expression.name != self._name or (not steps and self._shape):
            return None
        return tuple(reversed(steps))

    def _with(self, written: Written, path: Path) -> Written:
        """Return what is written behind a write of an element, or of a whole structure."""
        if not path:
            return replace(written, whole=True)
        if "" in path:
            return written
        elements = written.elements | {path}
        whole = written.whole or (len(elements) >= len(self._all) and all(one in elements for one in self._all))
        return replace(written, elements=elements, whole=whole)

    def _has(self, written: Written, path: Path) -> bool:
        """Say whether an element is written, for all values that the variables in its indices have."""
        if written.whole or any(path[:length] in written.elements for length in range(1, len(path) + 1)):
            return True
        bounds = [self._loops.get(one) if isinstance(one, str) else None for one in path]
        for place, bound in enumerate(bounds):
            if bound is None:
                continue
            for one in written.ranges:
                inside = one.behind == bound[1] and (
                    one.first == bound[0]
                    or (isinstance(one.first, int) and isinstance(bound[0], int) and one.first <= bound[0])
                )
                if inside and one.path == path[:place] and place == len(path) - 1:
                    return True
        return False

    def _index(self, expression: syntax.Expression, values: Mapping[str, int]) -> Index:
        """Return the value of an index: a number, a text that stands for it, or an empty one where it is not known."""
        match expression:
            case syntax.Name(name=name) if name in values:
                return values[name]
            case syntax.Name(name=name) if name in self._loops:
                return name
            case syntax.Postfix(operand=syntax.Name(name=name)) if name in values:
                return values[name]
            case syntax.Prefix(op="++" | "--" as op, operand=syntax.Name(name=name)) if name in values:
                return values[name] + (1 if op == "++" else -1)
            case syntax.Infix(op=op, left=left, right=right):
                first, second = self._index(left, values), self._index(right, values)
                if isinstance(first, int) and isinstance(second, int):
                    return _computed(op, first, second)
                return "" if "" in (first, second) else f"( {first} {op} {second} )"
            case _:
                pass
        names = syntax.names_in(expression)
        number = None if names & self._hidden or (names and self._calls) else self._number(expression)
        if number is not None:
            return number
        return expression.name if isinstance(expression, syntax.Name) and not expression.uncertain else ""

    def _changed(self, statement: syntax.Statement) -> set[str]:
        return changed(part for one in syntax.walk_statements(statement) for part in syntax.direct_expressions(one))


def _may_skip(expression: syntax.Expression) -> bool:
    """Say whether a part of an expression may be left out."""
    return any(
        isinstance(one, syntax.Ternary) or (isinstance(one, syntax.Infix) and one.op in ("&&", "||"))
        for one in syntax.walk(expression)
    )


def _is_size_of(size: syntax.Expression, name: str) -> bool:
    match size:
        case syntax.Prefix(op="sizeof", operand=syntax.Name(name=found)):
            return found == name and bool(name)
        case _:
            return False


def _computed(op: str, first: int, second: int) -> Index:
    """Return the value of an operation; an empty text where it has none that is certain."""
    match op:
        case "+" | "-" | "*":
            return {"+": first + second, "-": first - second, "*": first * second}[op]
        case "/" | "%" if second > 0 and first >= 0:
            return first // second if op == "/" else first % second
        case "<" | "<=" | ">" | ">=" | "==" | "!=":
            less, equal = first < second, first == second
            return int(
                {"<": less, "<=": less or equal, ">": not (less or equal), ">=": not less}.get(op, equal ^ (op == "!="))
            )
        case _:
            return ""


def _indices(expression: syntax.Expression) -> tuple[syntax.Expression, ...]:
    """Return the indices of an element."""
    found: list[syntax.Expression] = []
    while isinstance(expression, syntax.Subscript | syntax.Member):
        if isinstance(expression, syntax.Subscript):
            found.append(expression.index)
        expression = expression.base
    return tuple(found)


def _leaves(statement: syntax.Statement) -> bool:
    """Say whether no way leads past a statement."""
    match statement:
        case syntax.Jump():
            return True
        case syntax.Block(items=items):
            return any(_leaves(one) for one in items)
        case syntax.IfStatement(then=then, otherwise=otherwise):
            return otherwise is not None and _leaves(then) and _leaves(otherwise)
        case _:
            return False


def _numbered(elements: frozenset[Path]) -> frozenset[Path]:
    """Return the elements whose indices are numbers or members, which mean the same in another function."""
    return frozenset(one for one in elements if all(isinstance(part, int) or part.startswith(".") for part in one))


def _spoken(*indices: Index) -> set[str]:
    return {word for one in indices if isinstance(one, str) for word in one.split()}
