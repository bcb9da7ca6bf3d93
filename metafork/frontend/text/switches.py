"""``switch`` as a chain of ``if``s: what a schedule has for it.

    switch (e) {                              if (e == 1 || e == 2) A;
      case 1: case 2: A; break;       -->     else if (e == 3) { B; C; }
      case 3: B;                              else C;
      default: C;
    }

Code that falls through to the next label is written out once for each label from which it is reached.  A ``break``
within a statement leaves out what follows it.  ``e`` is read for each comparison, so it has no effect of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from metafork.frontend.text import syntax
from metafork.frontend.text.free_names import free_names
from metafork.frontend.text.jumps import RETURNED, ReturnLowering, always_leaves
from metafork.frontend.text.syntax_changes import with_expressions, with_operands, with_statements
from metafork.ir.names import fresh

MOST_WRITTEN_OUT = 200
"""Statements that a ``switch`` may become."""

_MOST_READ = 12
"""Parts of an expression that is read for each label."""


def as_branches(switch: syntax.SwitchStatement, names: Collection[str]) -> syntax.Statement:
    """Return a ``switch`` as branches, by names besides those that there are; itself where it has no such form."""
    segments = _segments(switch.body)
    value = switch.value
    if segments is None or not is_plain(value):
        return switch
    bodies = [_reached([items for _, items in segments[number:]]) for number in range(len(segments))]
    if sum(len(list(syntax.walk_statements(one))) for body in bodies for one in body) > MOST_WRITTEN_OUT:
        return switch
    flag = fresh("left", {*names})
    built: syntax.Statement | None = None
    for (labels, _), body in reversed([*zip(segments, bodies, strict=True)]):
        if None in labels:
            built = _block(body, switch, flag)
    for (labels, _), body in reversed([*zip(segments, bodies, strict=True)]):
        if None in labels:
            continue
        tests = [syntax.Infix("==", value, label, label.span) for label in labels if label is not None]
        test: syntax.Expression = tests[0]
        for one in tests[1:]:
            test = syntax.Infix("||", test, one, one.span)
        built = syntax.IfStatement(test, _block(body, switch, flag), built, switch.span)
    return built or syntax.Empty(switch.span)


def is_plain(value: syntax.Expression) -> bool:
    """Say whether an expression is short and has no effect, so that it may be read again."""
    parts = list(syntax.walk(value))
    acting = (syntax.Assignment, syntax.Postfix, syntax.Invocation, syntax.Unsupported, syntax.Comma)
    stepped = any(isinstance(one, syntax.Prefix) and one.op in ("++", "--") for one in parts)
    return len(parts) <= _MOST_READ and not stepped and not any(isinstance(one, acting) for one in parts)


Label = syntax.Expression | None
"""The value of a ``case``; ``None`` is ``default``."""


def _segments(body: syntax.Statement) -> list[tuple[list[Label], list[syntax.Statement]]] | None:
    """Return the labels of a body with what stands between them; ``None`` where labels stand within statements."""
    found: list[tuple[list[Label], list[syntax.Statement]]] = []
    for item in body.items if isinstance(body, syntax.Block) else (body,):
        labels: list[Label] = []
        while isinstance(item, syntax.LabelledStatement) and item.label in ("case", "default"):
            if item.label == "case" and item.value is None:
                return None
            labels.append(item.value)
            item = item.body
        if any(isinstance(one, syntax.LabelledStatement) for one in syntax.walk_statements(item)):
            return None
        if labels and found and not found[-1][1]:
            found[-1][0].extend(labels)
        elif labels:
            found.append((labels, []))
        if not isinstance(item, syntax.Empty):
            if not found:
                return None
            found[-1][1].append(item)
    for number, (_, items) in enumerate(found):
        declared = {name.name for one in items if isinstance(one, syntax.Declaration) for name in one.declarators}
        later = tuple(one for _, others in found[number + 1 :] for one in others)
        if declared & free_names(syntax.Block(later, body.span)):
            return None
    return found


def _reached(rest: Sequence[Sequence[syntax.Statement]]) -> list[syntax.Statement]:
    """Return the statements from a label on, up to the ``break`` that ends them."""
    found: list[syntax.Statement] = []
    for items in rest:
        for item in items:
            if isinstance(item, syntax.Jump) and item.word == "break":
                return found
            found.append(item)
            if any(always_leaves(item, word) for word in ("return", "continue", "break")):
                return found
    return found


def _block(items: Sequence[syntax.Statement], switch: syntax.SwitchStatement, flag: str) -> syntax.Block:
    """Return statements as a block that a ``break`` within one of them leaves."""
    lowering = ReturnLowering(switch.span, "break")
    lowered = lowering.body(items)
    if not lowering.flagged:
        return syntax.Block(lowered, switch.span)
    type_ = syntax.TypeName(("int",), frozenset(), frozenset(), (), 0, False, switch.span)
    zero = syntax.Constant("0", switch.span)
    declared = syntax.Declaration((syntax.Declarator(flag, type_, zero, switch.span, switch.span),), switch.span)
    return syntax.Block((declared, *(_renamed(one, flag) for one in lowered)), switch.span)


def _renamed(statement: syntax.Statement, flag: str) -> syntax.Statement:
    """Return a statement in which the variable of what has left is called otherwise."""

    def name(expression: syntax.Expression) -> syntax.Expression:
        if isinstance(expression, syntax.Name):
            return replace(expression, name=flag) if expression.name == RETURNED else expression
        return with_operands(expression, name)

    return with_statements(with_expressions(statement, name), lambda one: _renamed(one, flag))
