"""What the head of a loop says, whoever asks: by what it steps, and what it compares its variable with."""

from __future__ import annotations

from typing import NamedTuple

from metafork.frontend.text import syntax

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}


class Step(NamedTuple):
    """``variable += by``, or ``variable -= by`` where it goes ``down``; ``by`` is ``None`` for ``++`` and ``--``."""

    variable: str
    by: syntax.Expression | None
    down: bool


def step_of(step: syntax.Expression | None) -> Step | None:
    """Return how an expression steps a variable, ``None`` where it does something else."""
    match step:
        case (
            syntax.Postfix(op=op, operand=syntax.Name(name=name))
            | syntax.Prefix(op="++" | "--" as op, operand=syntax.Name(name=name))
        ):
            return Step(name, None, op == "--")
        case syntax.Assignment(op="+=" | "-=" as op, target=syntax.Name(name=name), value=by):
            return Step(name, by, op == "-=")
        case syntax.Assignment(
            op="=",
            target=syntax.Name(name=name),
            value=syntax.Infix(op="+" | "-" as op, left=syntax.Name(name=left), right=by),
        ) if left == name:
            return Step(name, by, op == "-")
        case syntax.Assignment(
            op="=", target=syntax.Name(name=name), value=syntax.Infix(op="+", left=by, right=syntax.Name(name=right))
        ) if right == name:
            return Step(name, by, False)
        case _:
            return None


def comparison_of(condition: syntax.Expression, variable: str) -> tuple[str, syntax.Expression] | None:
    """Return operator and limit of ``variable op limit``, whichever side it stands on; the limit is free of it."""
    match condition:
        case syntax.Infix(op=op, left=syntax.Name(name=name), right=limit) if name == variable and op in _TURNED:
            pass
        case syntax.Infix(op=op, left=limit, right=syntax.Name(name=name)) if name == variable and op in _TURNED:
            op = _TURNED[op]
        case _:
            return None
    return None if variable in syntax.names_in(limit) else (op, limit)
