"""Schedules that are nearly right, and how they are written: the user's own words where the language has them.

Tokens are those of a function with macros expanded; what is shown is what the file has at their places.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from textwrap import dedent, indent

from metafork.frontend.text.clauses.keywords import CLAUSES
from metafork.frontend.text.reporter import Reporter
from metafork.frontend.text.tokens import OPENING, Token, hull
from metafork.ir.messages.source import Span

FORK_JOIN = frozenset({"meta_fork", "meta_join", "meta_parallel_for"})
"""Constructs of MetaFork that this tool does not compile."""


def schedule_that_ends(
    reporter: Reporter, tokens: Sequence[Token], partners: Mapping[int, int], keyword: int, semicolon: int
) -> None:
    """Report ``meta_schedule;`` in front of its loops."""
    following = semicolon + 1
    if following >= len(tokens) or tokens[following].text not in ("meta_for", "{"):
        way = "write a loop nest in the place of the `;`."
    elif tokens[following].text == "{":
        way = f"remove the `;`: `{_spelled(reporter, tokens, keyword, semicolon)} {{`"
    else:
        head = _spelled(reporter, tokens, keyword, semicolon)
        block = "" if semicolon > keyword + 1 else " meta_block(B)"
        note = "" if not block else ", with a block size, here a parameter `int B`"
        loops = _indented(reporter, hull(tokens[following].span, tokens[_end(tokens, partners, following)].span))
        way = f"remove the `;`, and put the loop in braces{note}:\n  {head}{block} {{\n{loops}\n  }}"
    reporter.error(
        "MF0014",
        tokens[semicolon].span,
        "this schedule is empty, because it ends here",
        reason="a `;` alone is an empty statement.",
        way_out=way,
    )


def schedule_with_arguments(
    reporter: Reporter, tokens: Sequence[Token], partners: Mapping[int, int], opening: int
) -> None:
    """Report ``meta_schedule(B) {``."""
    close = partners[opening]
    inside = _spelled(reporter, tokens, opening + 1, close) if close > opening + 1 else ""
    if not inside:
        way = "write `meta_schedule {`."
    elif tokens[opening + 1].text in CLAUSES:
        way = f"remove the parentheses: `meta_schedule {inside} {{`"
    else:
        way = f"the block size has a word of its own: `meta_schedule meta_block({inside}) {{`"
    span = hull(tokens[opening].span, tokens[close].span)
    reporter.error(
        "MF0010",
        span,
        "`meta_schedule` takes no arguments",
        reason="clauses follow it, each with its own word.",
        way_out=way,
    )


def word_before_loop(reporter: Reporter, word: Token, head: Span) -> None:
    """Report a word in front of a loop, such as ``parallel for (...)``; ``head`` is the loop's."""
    written = " ".join(reporter.written(head).split())
    way = f"write `meta_{written.removeprefix('meta_')}`, without `{word.text}`."
    message = f"`{word.text}` is not a word of this language"
    reporter.error("MF0011", word.span, message, reason="the parallel loop of a schedule is `meta_for`.", way_out=way)


def another_loop(reporter: Reporter, word: Token, head: Span) -> None:
    """Report a loop with a word of another system; ``head`` is the word and the parentheses behind it."""
    way = f"write `meta_for{reporter.written(head)[len(word.text) :]}`"
    message = f"`{word.text}` is not a word of this language"
    reporter.error("MF0011", word.span, message, reason="the parallel loop of a schedule is `meta_for`.", way_out=way)


def no_schedule(reporter: Reporter, tokens: Sequence[Token], partners: Mapping[int, int], whole: Span) -> None:
    """Refuse a file without code; report the first construct of MetaFork's fork-join model in one without schedules.

    Raises ``RefusedError``.
    """
    if not tokens:
        way = "start from a first program, such as examples/smooth.mf. docs/tutorial.md explains it."
        message = "this file has no code" if reporter.written(whole).strip() else "this file is empty"
        raise reporter.refuse("MF0002", whole, message, reason="there is nothing to compile.", way_out=way)
    for index, token in enumerate(tokens[:-1]):
        if token.text not in FORK_JOIN:
            continue
        way = "write a `meta_schedule` with a `meta_for` for what may run at the same time."
        if token.text == "meta_parallel_for" and tokens[index + 1].text == "(":
            loop = hull(token.span, tokens[_end(tokens, partners, index)].span)
            shown = _indented(reporter, loop).replace("meta_parallel_for", "meta_for")
            way = "cut the loop into blocks, whose size is a parameter `int B`:\n"
            way += f"  meta_schedule meta_block(B) {{\n{shown}\n  }}"
        reporter.error(
            "MF0011",
            token.span,
            f"`{token.text}` is not a word of this language",
            reason="this tool compiles `meta_schedule` with `meta_for`, not MetaFork's `meta_fork`, `meta_join` and "
            "`meta_parallel_for`.",
            way_out=way,
        )
        return


def sized_cache(
    reporter: Reporter, tokens: Sequence[Token], partners: Mapping[int, int], bracket: int, inside: tuple[int, int]
) -> None:
    """Report ``cache(x[B])``; ``inside`` are the index of the first token in the parentheses and that behind them."""
    last = partners[bracket]
    names = []
    here, close = inside
    while here < close:
        if tokens[here].text in OPENING:
            here = partners[here]
        elif tokens[here].text != ",":
            names.append(tokens[here].text)
        here += 1
    reporter.error(
        "MF0010",
        hull(tokens[bracket].span, tokens[last].span),
        "`cache` takes names of arrays only",
        reason=f"metafork finds out which part of `{tokens[bracket - 1].text}` a block needs.",
        way_out=f"write the names alone, as in `cache({', '.join(names)})`.",
    )


def _end(tokens: Sequence[Token], partners: Mapping[int, int], index: int) -> int:
    """Return the index of the last token of a statement that begins with a loop: its ``;`` or ``}``."""
    while index < len(tokens) - 1 and tokens[index].text != ";":
        if tokens[index].text in OPENING:
            if tokens[index].text == "{":
                return partners[index]
            index = partners[index]
        index += 1
    return index


def _spelled(reporter: Reporter, tokens: Sequence[Token], first: int, behind: int) -> str:
    return " ".join(reporter.written(hull(tokens[first].span, tokens[behind - 1].span)).split())


def _indented(reporter: Reporter, span: Span) -> str:
    """Return lines of the file as they stand in a block that is indented by two."""
    margin = " " * (span.column - 1)
    return indent(dedent(margin + re.sub(r"\n[ \t]*\n", "\n", reporter.written(span))), "    ")
