"""The shape of a nest as it was written: its ``meta_for``s, the border between grid and threads, the names it uses."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from metafork.frontend.text import syntax


def meta_loops(statement: syntax.Statement) -> dict[int, syntax.ForStatement]:
    """Return, for every number of ``meta_for``s that some way into the statement crosses, the innermost of one way."""
    if isinstance(statement, syntax.ForStatement) and statement.meta:
        below = meta_loops(statement.body)
        return {count + 1: loop for count, loop in below.items()} or {1: statement}
    found: dict[int, syntax.ForStatement] = {}
    for child in syntax.direct_statements(statement):
        for count, loop in meta_loops(child).items():
            found.setdefault(count, loop)
    return found


def items_of(statement: syntax.Statement) -> list[syntax.Statement]:
    """Return the statements of a block, or the statement alone; empty statements left out."""
    if isinstance(statement, syntax.Block):
        items: list[syntax.Statement] = [item for item in statement.items if not isinstance(item, syntax.Empty)]
        return items_of(items[0]) if len(items) == 1 and isinstance(items[0], syntax.Block) else items
    return [] if isinstance(statement, syntax.Empty) else [statement]


def border(outermost: syntax.ForStatement, total: int) -> int | None:
    """Return how many of a nest's ``meta_for``s are the grid's; ``None`` where nothing says it.

    Serial code between two of them is the border; without such code it is half of them.  Declarations of scalars count
    as such code only where there is no half.
    """
    declarations: list[int] = []
    here = outermost
    for depth in range(1, total):
        items = items_of(here.body)
        if not isinstance(items[-1], syntax.ForStatement) or not items[-1].meta:
            return depth
        for item in items[:-1]:
            if not isinstance(item, syntax.Declaration) or any(one.type.extents for one in item.declarators):
                return depth
        if len(items) > 1:
            declarations.append(depth)
        here = items[-1]
    if total % 2 == 0:
        return total // 2
    return declarations[0] if len(declarations) == 1 else None


def written(statement: syntax.Statement) -> Iterator[syntax.Name]:
    """Yield the variables that are assigned or stepped in a statement, or whose address is taken, where they are."""
    for part in syntax.expressions_in(statement):
        match part:
            case (
                syntax.Assignment(target=syntax.Name() as name)
                | syntax.Postfix(operand=syntax.Name() as name)
                | syntax.Prefix(op="++" | "--" | "&", operand=syntax.Name() as name)
            ):
                yield name
            case _:
                pass


def counter(
    loop: syntax.ForStatement,
) -> tuple[str, syntax.Expression, syntax.Expression, syntax.Expression] | None:
    """Return the variable of a loop that counts up, its start, what is behind its end, and its step."""
    match loop.init:
        case syntax.Declaration(declarators=(syntax.Declarator(name=name, value=start),)) if start is not None:
            pass
        case syntax.Assignment(op="=", target=syntax.Name(name=name), value=start):
            pass
        case _:
            return None
    match loop.condition:
        case syntax.Infix(op="<", left=syntax.Name(name=tested), right=end):
            pass
        case syntax.Infix(op="<=", left=syntax.Name(name=tested), right=end):
            end = syntax.Infix("+", end, syntax.Constant("1", end.span), end.span)
        case _:
            return None
    one = syntax.Constant("1", loop.head)
    steps = loop.step.items if isinstance(loop.step, syntax.Comma) else (loop.step,)
    own = [part for part in steps if part is not None and name in syntax.names_in(part)]
    if len(own) != 1:
        return None
    match own[0]:
        case syntax.Postfix(op="++", operand=syntax.Name(name=stepped)):
            step: syntax.Expression = one
        case syntax.Prefix(op="++", operand=syntax.Name(name=stepped)):
            step = one
        case syntax.Assignment(op="+=", target=syntax.Name(name=stepped), value=step):
            pass
        case _:
            return None
    return (name, start, end, step) if name == tested == stepped else None


def fresh(text: str, taken: Collection[str]) -> str:
    """Return a name that is not taken: the text, or the text with a number behind it."""
    found, number = text, 2
    while found in taken:
        found, number = f"{text}_{number}", number + 1
    return found
