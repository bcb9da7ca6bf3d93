"""Bare fragments: which declarations become parameters, and what of them the host side leaves out."""

from __future__ import annotations

from metafork.frontend.host.variables import Variable
from metafork.frontend.text import syntax
from metafork.ir.messages.source import Span


def is_argument(declarator: syntax.Declarator, variables: dict[Span, Variable]) -> bool:
    """Return whether a declaration is an argument: uninitialised, and nothing in the fragment gives it a value."""
    variable = variables.get(declarator.name_span)
    if variable is None or variable.fault or declarator.value is not None:
        return False
    return not variable.writes or variable.element is not None


def left_out(declaration: syntax.Declaration, taken: list[syntax.Declarator]) -> list[Span]:
    """Return what the host side leaves out: the whole declaration, or declarators with their commas."""
    if not taken:
        return []
    if len(taken) == len(declaration.declarators):
        return [declaration.span]
    spans: list[Span] = []
    every = declaration.declarators
    kept_before = False
    for index, declarator in enumerate(every):
        if declarator not in taken:
            kept_before = True
        elif kept_before:
            spans.append(_between(every[index - 1].span, declarator.span))
        else:
            spans.append(_up_to(declarator.span, every[index + 1].span))
    return spans


def _between(before: Span, last: Span) -> Span:
    return Span(before.end_line, before.end_column, last.end_line, last.end_column, before.end, last.end)


def _up_to(first: Span, behind: Span) -> Span:
    return Span(first.line, first.column, behind.line, behind.column, first.start, behind.start)
