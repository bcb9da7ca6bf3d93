"""Clauses of schedules and loops: ``meta_grid``, ``meta_block``, ``meta_min_blocks``, ``cache``, ``meta_reduction``."""

from __future__ import annotations

from metafork.frontend.text import syntax
from metafork.frontend.text.clauses.reductions import OPERATORS as REDUCTIONS
from metafork.frontend.text.definitions import split_commas
from metafork.frontend.text.parsing import nearly_right
from metafork.frontend.text.parsing.pieces import Pieces
from metafork.frontend.text.tokens import TokenKind


class Clauses(Pieces):
    """Reads clauses; one that is reported is empty, or none."""

    def _reduction_clauses(self, index: int, close: int) -> list[syntax.Reduction]:
        span = self._hull(index, close + 1)
        here = index + 2
        op = self._text(here, close)
        clauses: list[syntax.Reduction] = []
        if op in REDUCTIONS and self._text(here + 1, close) == ":":
            here += 2
            while here < close:
                here += self._text(here, close) == "*"
                if self._kind(here, close) is not TokenKind.NAME or self._text(here + 1, close) not in ("", ","):
                    break
                clauses.append(
                    syntax.Reduction(op, syntax.Name(self._tokens[here].text, self._tokens[here].span), span)
                )
                here += 2
            else:
                if clauses:
                    return clauses
        self._reporter.error("MF0225", span, "this `meta_reduction` is not understood")
        return []

    def _grid_clause(self, index: int, close: int) -> syntax.GridClause:
        """Parse ``meta_grid(loops)``; one that is reported has no loops."""
        span = self._hull(index, close + 1)
        if close == index + 3 and self._tokens[index + 2].text in ("1", "2", "3"):
            return syntax.GridClause(int(self._tokens[index + 2].text), span)
        self._reporter.error("MF0010", span, "`meta_grid(...)` says how many `meta_for`s are the grid's: 1, 2 or 3")
        return syntax.GridClause(0, span)

    def _block_clause(self, index: int, close: int) -> syntax.BlockClause:
        """Parse ``meta_block(extent, ...)``; one that is reported is empty."""
        parts = [part for part in split_commas(self._tokens, index + 2, close) if part[0] < part[1]]
        shape = tuple(self._expression(first, behind, True) for first, behind in parts)
        span = self._hull(index, close + 1)
        if not 1 <= len(shape) <= 3:
            self._reporter.error("MF0010", span, "`meta_block(...)` is the shape of a block: one to three extents")
        return syntax.BlockClause(shape[:3], span)

    def _min_blocks_clause(self, index: int, close: int) -> syntax.MinBlocksClause | None:
        """Parse ``meta_min_blocks(number)``; one that is reported is none."""
        parts = split_commas(self._tokens, index + 2, close)
        span = self._hull(index, close + 1)
        if len(parts) != 1 or parts[0][0] == parts[0][1]:
            message = "`meta_min_blocks(...)` says how many blocks a multiprocessor runs at once: one number"
            self._reporter.error("MF0115", span, message)
            return None
        return syntax.MinBlocksClause(self._expression(*parts[0], True), span)

    def _cache_clause(self, index: int, end: int) -> tuple[syntax.Name, ...]:
        names: list[syntax.Name] = []
        for position in range(index, end):
            token = self._tokens[position]
            expects_name = (position - index) % 2 == 0
            if expects_name and token.kind is TokenKind.NAME:
                names.append(syntax.Name(token.text, token.span))
            elif token.text == "[" and not expects_name:
                nearly_right.sized_cache(self._reporter, self._tokens, self._partners, position, (index, end))
                break
            elif expects_name or token.text != "," or position + 1 == end:
                self._reporter.error("MF0010", token.span, f"`{token.text}` cannot stand in `cache(...)`")
                break
        return tuple(names)
