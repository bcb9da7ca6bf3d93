"""Live variables: whether the value that a variable has at some place may be read later.

The usual backward analysis, over statements rather than a graph of them, for one variable at a time.  It takes a read
where it cannot tell: an address taken, a text that is not understood and has the name.  Loops may run any number of
times, a ``switch`` may be entered anywhere.  Functions with ``goto`` are not for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from metafork.frontend.text import syntax
from metafork.ir.messages.source import Span


class Effect(Enum):
    """What the evaluation of an expression does first with a variable, as far as it surely does anything."""

    NOTHING = 0
    WRITE = 1
    READ = 2


class _Jumps(NamedTuple):
    """Whether the variable is live where a ``break`` or a ``continue`` leads."""

    broken: bool = False
    continued: bool = False


class Liveness:
    """The liveness of the variable ``name``, that of the scope in which a statement stands.

    Any other variable of that name hides it, so its own declaration, if there is one in the text, is given by the place
    of the name.  ``behind`` says of each loop and schedule that was walked, by ``id``, whether it is live behind it.
    """

    def __init__(self, name: str, declaration: Span | None = None) -> None:
        self._name = name
        self._own = declaration
        self.behind: dict[int, bool] = {}

    def before(self, statement: syntax.Statement, after: bool) -> bool:
        """Return whether the variable is live before a statement, given whether it is behind it."""
        return self._before(statement, after, _Jumps())

    def _before(self, statement: syntax.Statement, after: bool, jumps: _Jumps) -> bool:
        match statement:
            case syntax.Block(items=items):
                return self._items(items, after, jumps)
            case syntax.Declaration(declarators=declarators):
                return self._declared(declarators, after)
            case syntax.ExpressionStatement(expression=expression):
                return self._evaluated(expression, after)
            case syntax.IfStatement(condition=condition, then=then, otherwise=otherwise):
                live = self._before(then, after, jumps)
                live |= after if otherwise is None else self._before(otherwise, after, jumps)
                return self._evaluated(condition, live)
            case syntax.ForStatement(init=init):
                return self._for(statement, init, after)
            case syntax.WhileStatement():
                return self._while(statement, after)
            case syntax.SwitchStatement(value=value, body=body):
                inside = any(self._mentions(one) for one in syntax.walk_statements(body))
                return inside or self._evaluated(value, after or jumps.continued)
            case syntax.LabelledStatement(body=body):
                return self._before(body, after, jumps)
            case syntax.Jump(word=word, value=value):
                if word in ("break", "continue"):
                    return jumps.broken if word == "break" else jumps.continued
                return word != "return" or (value is not None and self._evaluated(value, False))
            case syntax.Opaque():
                return after or self._mentions(statement)
            case syntax.Empty():
                return after
            case syntax.ScheduleStatement(body=body, block=block):
                self._note(statement, after)
                shaped = block is not None and any(self.effect(one) is Effect.READ for one in block.shape)
                return self._before(body, after, jumps) or shaped

    def _note(self, statement: syntax.Statement, after: bool) -> None:
        self.behind[id(statement)] = self.behind.get(id(statement), False) or after

    def _items(self, items: tuple[syntax.Statement, ...], after: bool, jumps: _Jumps) -> bool:
        for number, item in enumerate(items):
            if isinstance(item, syntax.Declaration) and self._hidden(item):
                # From here to the end of the block the name is that of another variable.
                after = after or jumps.broken or jumps.continued
                items = items[: number + 1]
                break
        for item in reversed(items):
            after = self._before(item, after, jumps)
        return after

    def _hidden(self, declaration: syntax.Declaration) -> bool:
        return any(one.name == self._name and one.name_span != self._own for one in declaration.declarators)

    def _declared(self, declarators: tuple[syntax.Declarator, ...], after: bool) -> bool:
        for declarator in reversed(declarators):
            if declarator.name == self._name:
                after = after and declarator.name_span != self._own
            elif declarator.value is not None:
                after = self._evaluated(declarator.value, after)
            values = () if declarator.braces is None else syntax.items_of(declarator.braces)
            after = after or any(self.effect(one) is Effect.READ for one in (*values, *_sizes(declarator.type)))
        return after

    def _for(self, loop: syntax.ForStatement, init: syntax.Declaration | syntax.Expression | None, after: bool) -> bool:
        self._note(loop, after)
        if isinstance(init, syntax.Declaration) and self._hidden(init):
            return self._declared(init.declarators, after)
        head = False
        for _ in range(2):  # liveness only grows, and is one of two values
            step = head if loop.step is None else self._evaluated(loop.step, head)
            body = self._before(loop.body, step, _Jumps(after, step)) or after
            head = body if loop.condition is None else self._evaluated(loop.condition, body)
        if init is None:
            return head
        if isinstance(init, syntax.Declaration):
            return self._declared(init.declarators, head)
        return self._evaluated(init, head)

    def _while(self, loop: syntax.WhileStatement, after: bool) -> bool:
        self._note(loop, after)
        entry = asked = False
        for _ in range(3):
            asked = self._evaluated(loop.condition, entry or after)
            entry = self._before(loop.body, asked, _Jumps(after, asked))
        return entry if loop.is_do else asked

    def _evaluated(self, expression: syntax.Expression, after: bool) -> bool:
        effect = self.effect(expression)
        return after if effect is Effect.NOTHING else effect is Effect.READ

    def _mentions(self, statement: syntax.Statement) -> bool:
        if isinstance(statement, syntax.Opaque):
            return any(token.text == self._name for token in statement.tokens)
        return any(self.effect(one) is not Effect.NOTHING for one in syntax.direct_expressions(statement))

    def effect(self, expression: syntax.Expression) -> Effect:
        """Return what an expression does first with the variable; a write only where it is sure."""
        match expression:
            case syntax.Name(name=name):
                return Effect.READ if name == self._name else Effect.NOTHING
            case syntax.Unsupported(tokens=tokens, written=written):
                found = self._name in written or any(token.text == self._name for token in tokens)
                return Effect.READ if found else Effect.NOTHING
            case syntax.SizeOfType(type=type_):
                return self._any(_sizes(type_))
            case syntax.Prefix(op="sizeof", operand=operand):
                # It is evaluated for an array of variable length alone.
                return Effect.NOTHING if self.effect(operand) is Effect.NOTHING else Effect.READ
            case syntax.Conversion(type=type_, operand=operand):
                return self._any((*_sizes(type_), operand))
            case syntax.Assignment(op="=", target=syntax.Name(name=name), value=value) if name == self._name:
                return Effect.READ if self.effect(value) is Effect.READ else Effect.WRITE
            case syntax.Assignment(op="=", target=syntax.Name(), value=value):
                return self.effect(value)
            case syntax.Infix(op="&&" | "||", left=left, right=right):
                return self._either(left, (right,))
            case syntax.Ternary(condition=condition, then=then, otherwise=otherwise):
                return self._either(condition, (then, otherwise))
            case syntax.Comma(items=items):
                return next((one for one in map(self.effect, items) if one is not Effect.NOTHING), Effect.NOTHING)
            case _:
                return self._any(syntax.operands(expression))

    def _any(self, expressions: Iterable[syntax.Expression]) -> Effect:
        """Return the effect of expressions that are evaluated in any order."""
        effects = [self.effect(one) for one in expressions]
        return max(effects, key=lambda one: one.value, default=Effect.NOTHING)

    def _either(self, first: syntax.Expression, then: tuple[syntax.Expression, ...]) -> Effect:
        """Return the effect of an expression of which one or none of several parts is evaluated behind the first."""
        effect = self.effect(first)
        if effect is not Effect.NOTHING:
            return effect
        effects = [self.effect(one) for one in then]
        if Effect.READ in effects:
            return Effect.READ
        return Effect.WRITE if len(effects) == 2 and effects == [Effect.WRITE] * 2 else Effect.NOTHING


def _sizes(type_: syntax.TypeName) -> list[syntax.Expression]:
    """Return the expressions in a type: extents of arrays, and of what a pointer leads to."""
    return [one for one in (*type_.extents, *type_.rows) if one is not None]
