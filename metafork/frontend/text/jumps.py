"""Code without ``return``, ``continue`` or ``break``: a value goes into a variable, and what follows is left out.

    if (c) return a; rest      -->  if (c) value = a; else { rest }
    for (...) if (c) return a; -->  for (...) if (c) { value = a; returned = 1; break; }
    rest                            if (!returned) { rest }

The two variables have names that no identifier of C equals.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from metafork.frontend.text import syntax
from metafork.ir.messages.source import Span

VALUE = "value of the call"
"""The variable of what a function returns."""

RETURNED = "has returned"
"""The variable that is 1 when a function has returned, where what follows must ask."""


def own_jumps(statement: syntax.Statement) -> set[str]:
    """Return the words of the jumps in a statement, those of ``break`` and ``continue`` in loops inside it left out."""
    match statement:
        case syntax.Jump(word=word):
            return {word}
        case syntax.ForStatement(body=body) | syntax.WhileStatement(body=body):
            return own_jumps(body) - {"break", "continue"}
        case _:
            return set().union(*(own_jumps(child) for child in syntax.direct_statements(statement)))


def has_return(statement: syntax.Statement) -> bool:
    """Return whether a ``return`` stands in a statement."""
    return "return" in own_jumps(statement)


def always_leaves(statement: syntax.Statement, word: str = "return") -> bool:
    """Return whether no way leads past a statement: all end with a jump of its own of that kind."""
    match statement:
        case syntax.Jump():
            return statement.word == word
        case syntax.Block(items=items):
            return any(always_leaves(item, word) for item in items)
        case syntax.IfStatement(then=then, otherwise=otherwise) if otherwise is not None:
            return always_leaves(then, word) and always_leaves(otherwise, word)
        case _:
            return False


class ReturnLowering:
    """Rewrites one body; ``flagged`` says whether the rewritten one asks for ``RETURNED``.

    With the word ``continue`` it is the body of a loop, which ends early in the same way.
    """

    def __init__(self, span: Span, word: str = "return") -> None:
        self._span = span
        self._word = word
        self.flagged = False

    def body(self, items: Sequence[syntax.Statement]) -> tuple[syntax.Statement, ...]:
        """Return the statements of a body, without the jumps."""
        return self._items(items, in_loop=False, flag=False)

    def _items(self, items: Sequence[syntax.Statement], in_loop: bool, flag: bool) -> tuple[syntax.Statement, ...]:
        """Rewrite statements; ``flag`` where somebody behind them asks whether they returned."""
        done: list[syntax.Statement] = []
        for index, item in enumerate(items):
            if self._word not in own_jumps(item):
                done.append(item)
                continue
            rest = items[index + 1 :]
            match item:
                case syntax.Jump(value=value, span=span):
                    if value is not None:
                        done.append(_assign(VALUE, value, span))
                    if flag:
                        self.flagged = True
                        done.append(_assign(RETURNED, syntax.Constant("1", span), span))
                    if in_loop:
                        done.append(syntax.Jump("break", None, span))
                    return tuple(done)
                case syntax.IfStatement(then=then, otherwise=otherwise) if not in_loop and always_leaves(
                    then, self._word
                ):
                    after = rest if otherwise is None else [otherwise, *rest]
                    done.append(replace(item, then=self._block([then], flag), otherwise=self._block(after, flag)))
                    return tuple(done)
                case syntax.IfStatement(then=then, otherwise=otherwise) if (
                    not in_loop and otherwise is not None and always_leaves(otherwise, self._word)
                ):
                    yes, no = self._block([then, *rest], flag), self._block([otherwise], flag)
                    done.append(replace(item, then=yes, otherwise=no))
                    return tuple(done)
                case _:
                    done.append(self._inside(item, in_loop, flag or (bool(rest) and not in_loop)))
            loop = isinstance(item, syntax.ForStatement | syntax.WhileStatement)
            if loop and in_loop:
                done.append(syntax.IfStatement(self._flag(), syntax.Jump("break", None, item.span), None, item.span))
            elif not in_loop and rest:
                test = syntax.Prefix("!", self._flag(), item.span)
                done.append(syntax.IfStatement(test, self._block(rest, flag), None, item.span))
                return tuple(done)
        return tuple(done)

    def _inside(self, item: syntax.Statement, in_loop: bool, flag: bool) -> syntax.Statement:
        """Rewrite a statement that may return or not."""
        match item:
            case syntax.Block(items=items):
                return replace(item, items=self._items(items, in_loop, flag))
            case syntax.IfStatement(then=then, otherwise=otherwise):
                no = None if otherwise is None else self._block([otherwise], flag, in_loop)
                return replace(item, then=self._block([then], flag, in_loop), otherwise=no)
            case syntax.ForStatement(body=body) | syntax.WhileStatement(body=body):
                return replace(item, body=self._block([body], flag or in_loop, in_loop=True))
            case _:
                return item  # a `switch` or a label, refused where it is built

    def _block(self, items: Sequence[syntax.Statement], flag: bool, in_loop: bool = False) -> syntax.Block:
        return syntax.Block(self._items(items, in_loop, flag), items[0].span if items else self._span)

    def _flag(self) -> syntax.Name:
        self.flagged = True
        return syntax.Name(RETURNED, self._span)


def _assign(name: str, value: syntax.Expression, span: Span) -> syntax.Statement:
    return syntax.ExpressionStatement(syntax.Assignment("=", syntax.Name(name, span), value, span), span)
