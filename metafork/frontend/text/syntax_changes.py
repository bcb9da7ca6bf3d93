"""The syntax tree with parts of it changed: nodes are values, so each function returns new ones."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from metafork.frontend.text import syntax


def with_statements(
    statement: syntax.Statement, change: Callable[[syntax.Statement], syntax.Statement]
) -> syntax.Statement:
    """Return a statement whose direct statements are changed."""
    match statement:
        case syntax.Block(items=items):
            return replace(statement, items=tuple(change(item) for item in items))
        case syntax.IfStatement(then=then, otherwise=otherwise):
            return replace(statement, then=change(then), otherwise=None if otherwise is None else change(otherwise))
        case (
            syntax.ForStatement(body=body)
            | syntax.WhileStatement(body=body)
            | syntax.SwitchStatement(body=body)
            | syntax.LabelledStatement(body=body)
            | syntax.ScheduleStatement(body=body)
        ):
            return replace(statement, body=change(body))
        case syntax.Declaration() | syntax.ExpressionStatement() | syntax.Jump() | syntax.Empty() | syntax.Opaque():
            return statement


def with_expressions(
    statement: syntax.Statement, change: Callable[[syntax.Expression], syntax.Expression]
) -> syntax.Statement:
    """Return a statement whose own expressions are changed: those of declarations too, statements below it not."""
    match statement:
        case syntax.Declaration(declarators=declarators):
            return replace(statement, declarators=tuple(_declarator(one, change) for one in declarators))
        case syntax.ExpressionStatement(expression=expression):
            return replace(statement, expression=change(expression))
        case syntax.IfStatement(condition=condition) | syntax.WhileStatement(condition=condition):
            return replace(statement, condition=change(condition))
        case syntax.SwitchStatement(value=value):
            return replace(statement, value=change(value))
        case syntax.Jump(value=value):
            return statement if value is None else replace(statement, value=change(value))
        case syntax.ForStatement(init=init, condition=condition, step=step):
            first: syntax.Declaration | syntax.Expression | None = None
            if isinstance(init, syntax.Declaration):
                first = replace(init, declarators=tuple(_declarator(one, change) for one in init.declarators))
            elif init is not None:
                first = change(init)
            return replace(
                statement,
                init=first,
                condition=None if condition is None else change(condition),
                step=None if step is None else change(step),
            )
        case (
            syntax.Block() | syntax.LabelledStatement() | syntax.Empty() | syntax.Opaque() | syntax.ScheduleStatement()
        ):
            return statement


def _declarator(
    declarator: syntax.Declarator, change: Callable[[syntax.Expression], syntax.Expression]
) -> syntax.Declarator:
    extents = tuple(None if one is None else change(one) for one in declarator.type.extents)
    return replace(
        declarator,
        type=replace(declarator.type, extents=extents),
        value=None if declarator.value is None else change(declarator.value),
        braces=None if declarator.braces is None else _braces(declarator.braces, change),
    )


def _braces(braces: syntax.Braces, change: Callable[[syntax.Expression], syntax.Expression]) -> syntax.Braces:
    def one_item(
        item: syntax.Expression | syntax.Braces | syntax.Designated,
    ) -> syntax.Expression | syntax.Braces | syntax.Designated:
        match item:
            case syntax.Braces():
                return _braces(item, change)
            case syntax.Designated(indices=indices, item=inner):
                value = _braces(inner, change) if isinstance(inner, syntax.Braces) else change(inner)
                changed = (one if isinstance(one, syntax.MemberDesignator) else change(one) for one in indices)
                return replace(item, indices=tuple(changed), item=value)
            case _:
                return change(item)

    return replace(braces, items=tuple(map(one_item, braces.items)))


def with_operands(
    expression: syntax.Expression, change: Callable[[syntax.Expression], syntax.Expression]
) -> syntax.Expression:
    """Return an expression whose direct operands are changed."""
    match expression:
        case syntax.Name() | syntax.Constant() | syntax.String() | syntax.SizeOfType() | syntax.Unsupported():
            return expression
        case syntax.Prefix(operand=operand) | syntax.Postfix(operand=operand) | syntax.Conversion(operand=operand):
            return replace(expression, operand=change(operand))
        case syntax.Infix(left=left, right=right):
            return replace(expression, left=change(left), right=change(right))
        case syntax.Ternary(condition=condition, then=then, otherwise=otherwise):
            return replace(expression, condition=change(condition), then=change(then), otherwise=change(otherwise))
        case syntax.Assignment(target=target, value=value):
            return replace(expression, target=change(target), value=change(value))
        case syntax.Comma(items=items):
            return replace(expression, items=tuple(map(change, items)))
        case syntax.Invocation(callee=callee, arguments=arguments):
            return replace(expression, callee=change(callee), arguments=tuple(map(change, arguments)))
        case syntax.Subscript(base=base, index=index):
            return replace(expression, base=change(base), index=change(index))
        case syntax.Member(base=base):
            return replace(expression, base=change(base))
        case syntax.Literal(braces=braces):
            return replace(expression, braces=_braces(braces, change))
