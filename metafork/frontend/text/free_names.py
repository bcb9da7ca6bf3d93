"""The names in a statement that no declaration in it binds."""

from __future__ import annotations

from metafork.frontend.text import syntax


def free_names(statement: syntax.Statement) -> set[str]:
    """Return the names in a statement that no declaration in it binds."""
    found: set[str] = set()

    def expression(node: syntax.Expression, bound: set[str]) -> None:
        for part in syntax.walk(node):
            if isinstance(part, syntax.Name) and part.name not in bound:
                found.add(part.name)

    def visit(node: syntax.Statement, bound: set[str]) -> None:
        inner = bound
        if isinstance(node, syntax.Block | syntax.ForStatement):
            inner = set(bound)
        if isinstance(node, syntax.ForStatement) and isinstance(node.init, syntax.Declaration):
            visit(node.init, inner)
            for part in (node.condition, node.step):
                if part is not None:
                    expression(part, inner)
        else:
            for part in syntax.direct_expressions(node):
                expression(part, inner)
        if isinstance(node, syntax.Declaration):
            bound.update(declarator.name for declarator in node.declarators)
        for child in syntax.direct_statements(node):
            visit(child, inner)

    visit(statement, set())
    return found
