"""Arrays that a schedule moves, as C walks through one by a pointer: ``x++``, ``*x++``, ``x += 4``."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec.structs import replace

from metafork.frontend.schedules.symbols import ArraySymbol, PointedSymbol, Symbol, UnusableSymbol
from metafork.frontend.text import syntax
from metafork.frontend.text.reporter import Reporter

_LOOP = re.compile(r"\bmeta_for\s*\([^;=()]*?\b(\w+)\s*=")


def refuse_moved(reporter: Reporter, resolve: Callable[[str], Symbol | None], expression: syntax.Expression) -> None:
    """Refuse an expression that moves an array or a pointer; raises ``RefusedError``, and returns for any other."""
    match expression:
        case (
            syntax.Assignment(op="+=" | "-=", target=syntax.Name(name=name))
            | syntax.Postfix(op="++" | "--", operand=syntax.Name(name=name))
            | syntax.Prefix(op="++" | "--", operand=syntax.Name(name=name))
        ):
            pass
        case _:
            return
    symbol = resolve(name)
    match symbol:
        case PointedSymbol() | UnusableSymbol(code="MF0201"):
            pass
        case ArraySymbol(array=array, whole=False) if not array.scalar:
            pass
        case _:
            return
    written = reporter.written(expression.span)
    before = reporter.written(replace(expression.span, start=0, end=expression.span.start))
    index = [found[1] for found in _LOOP.finditer(before)][-1:] or ["i"]
    declared = symbol.array.span if isinstance(symbol, ArraySymbol) else symbol.span
    raise reporter.refuse(
        "MF0316",
        expression.span,
        f"`{written}` moves a pointer in a schedule",
        reason="iterations of a `meta_for` run at the same time, so none can go on from where another stopped.",
        way_out=f"index the array by the variable of the loop, as in `{name}[{index[0]}]`, and remove `{written}`.",
        related=((declared, "declared here"),),
    )
