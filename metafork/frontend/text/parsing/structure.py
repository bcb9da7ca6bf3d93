"""Statements: a tolerant descent through the tokens of a function's body.

Blocks, branches, loops and schedules are found by their keywords and brackets; what stands between is handed to
``c_grammar`` piece by piece.  Outside schedules a piece that is not understood becomes ``Opaque`` and
matters to nobody; inside, it is a diagnostic, and the descent goes on behind it.  ``meta_schedule``, ``meta_for`` and
``cache`` are words of the language only where they stand at the place of one.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from metafork.frontend.text import syntax
from metafork.frontend.text.clauses.keywords import (
    AFTER_SCHEDULE,
    CLAUSES,
    KEYWORDS,
    TYPE_WORDS,
    closest_clause,
    is_atomic_keyword,
    is_reduction_keyword,
    is_schedule_keyword,
    similar,
)
from metafork.frontend.text.clauses.schedule_clauses import Clauses
from metafork.frontend.text.clauses.static_clauses import WORD as STATIC
from metafork.frontend.text.clauses.static_clauses import clauses as static_clauses
from metafork.frontend.text.clauses.static_clauses import is_static_keyword
from metafork.frontend.text.other_languages.words import foreign_head, storage_words
from metafork.frontend.text.parsing import nearly_right
from metafork.frontend.text.parsing.c_grammar import GrammarError, TooDeepError
from metafork.frontend.text.reporter import RefusedError
from metafork.frontend.text.switches import as_branches
from metafork.frontend.text.tokens import Token, TokenKind
from metafork.ir.messages.source import Span

NESTING_LIMIT = 80
"""Most statements inside each other."""
_OTHER_TYPE_WORDS = frozenset({"struct", "union", "enum", "_Bool", "bool"})


class Structure(Clauses):
    """Parses the statements of one stretch of tokens, macros expanded.

    ``types`` are the typedef names that are known; ``fragment`` allows what the papers print in bare fragments: a
    declaration that ends in a comma, with the next declaration on the next line.  Raises ``BracketError``.
    """

    def statements(self, span: Span, inside: bool = False) -> syntax.Block:
        """Return all statements as one block, those of a schedule where it is ``inside`` one.

        Raises ``RefusedError`` where the nesting is too deep.
        """
        items = self._items(0, len(self._tokens), inside, 1)
        return syntax.Block(items, span, tuple(self._pragmas))

    # --- statements -------------------------------------------------------------------------------------------

    def _items(self, index: int, end: int, inside: bool, depth: int) -> tuple[syntax.Statement, ...]:
        items: list[syntax.Statement] = []
        while index < end:
            statement, index = self._statement(index, end, inside, depth)
            items.append(statement)
        return tuple(items)

    def _statement(self, index: int, end: int, inside: bool, depth: int) -> tuple[syntax.Statement, int]:
        token = self._tokens[index]
        if depth > NESTING_LIMIT:
            raise self._reporter.refuse("MF0005", token.span, f"statements are nested more than {NESTING_LIMIT} deep")
        if token.text == "{":
            close = self._partners[index]
            items = self._items(index + 1, close, inside, depth + 1)
            return syntax.Block(items, self._hull(index, close + 1)), close + 1
        if token.text == ";":
            return syntax.Empty(token.span), index + 1
        if token.kind is TokenKind.NAME:
            found = self._keyword_statement(index, end, inside, depth)
            if found is not None:
                return found
        return self._simple(index, end, inside)

    def _keyword_statement(self, index: int, end: int, inside: bool, depth: int) -> tuple[syntax.Statement, int] | None:
        word = self._tokens[index].text
        following = self._text(index + 1, end)
        if self._tokens[index].fault:
            return None  # a macro by the name of a keyword
        if is_schedule_keyword(self._tokens, index):
            return self._schedule(index, end, inside, depth)
        if word == "_Pragma" and following == "(":
            behind = self._partners[index + 1] + 1
            span = self._hull(index, behind)
            empty: tuple[syntax.Statement, int] = syntax.Empty(span), behind
            statement, stop = empty if behind == end else self._statement(behind, end, inside, depth + 1)
            if behind == end or statement.span.start != span.start:  # no macro that gives both
                self._pragmas.append((span, self._text(index + 2, end).strip('"')))
            return statement, stop
        if is_static_keyword(self._tokens, index, self._partners):
            return self._static(index, end, inside, depth)
        if is_reduction_keyword(self._tokens, index, end):
            return self._reduction(index, end, inside, depth)
        if is_atomic_keyword(self._tokens, index, end, self._partners):
            return self._atomic(index, end, inside)
        if word in ("for", "meta_for") and following == "(":
            return self._for(index, end, inside, depth, meta=word == "meta_for")
        if word in ("if", "while", "switch") and following == "(":
            return self._conditional(index, end, inside, depth)
        if word == "do":
            return self._do(index, end, inside, depth)
        label = following == ":" and self._text(index + 2, end) != ":"  # `::` is C++
        if word in ("case", "default") or (label and word not in KEYWORDS):
            return self._label(index, end, inside, depth)
        if word in ("break", "continue", "goto", "return"):
            return self._jump(index, end, inside)
        if word not in KEYWORDS and word not in TYPE_WORDS:
            return self._misspelled(index, end, inside, depth)
        return None

    def _atomic(self, index: int, end: int, inside: bool) -> tuple[syntax.Statement, int]:
        """Parse what ``meta_atomic`` stands in front of."""
        statement, stop = self._simple(index + 1, end, inside)
        if isinstance(statement, syntax.ExpressionStatement):
            return replace(statement, span=self._hull(index, stop), atomic=True), stop
        if inside and not isinstance(statement, syntax.Opaque):
            self._reporter.error("MF0224", self._hull(index, stop), "`meta_atomic` stands in front of no assignment")
        return statement, stop

    def _reduction(self, index: int, end: int, inside: bool, depth: int) -> tuple[syntax.Statement, int]:
        """Parse ``meta_reduction(op: names)`` and the loop that it stands in front of."""
        close = self._partners[index + 1]
        clauses = self._reduction_clauses(index, close)
        loop, stop = self._statement(close + 1, end, inside, depth + 1)
        if isinstance(loop, syntax.ForStatement) and loop.meta:
            return replace(loop, reductions=(*clauses, *loop.reductions)), stop
        if not isinstance(loop, syntax.Opaque):
            span = self._hull(index, close + 1)
            self._reporter.error("MF0225", span, "this `meta_reduction` stands in front of no `meta_for`")
        return loop, stop

    def _static(self, index: int, end: int, inside: bool, depth: int) -> tuple[syntax.Statement, int]:
        """Parse ``meta_static(name: values)``, once or several times, and the schedule that it stands in front of."""
        found: list[syntax.StaticClause] = []
        here = index
        while here < end and self._text(here, end) == STATIC and self._text(here + 1, end) == "(":
            close = self._partners[here + 1]
            span = self._hull(here, close + 1)
            found += static_clauses(
                self._tokens,
                (here + 2, close),
                span,
                self._partners,
                lambda first, behind: self._expression(first, behind, True),
                lambda place, message: self._reporter.error("MF0226", place, message),
            )
            here = close + 1
        words = self._hull(index, here)
        if inside:
            self._reporter.error("MF0226", words, "this `meta_static` stands inside a schedule")
        elif not self._separate(index, here):
            self._reporter.error("MF0226", words, "a macro gives this `meta_static` together with other text")
        if here >= end:
            self._reporter.error("MF0226", words, "nothing follows this `meta_static`")
            return syntax.Empty(words), end
        schedule, stop = self._statement(here, end, inside, depth + 1)
        if isinstance(schedule, syntax.ScheduleStatement):
            return replace(schedule, static=tuple(found), static_words=words), stop
        if not inside:
            self._reporter.error("MF0226", words, "this `meta_static` stands in front of no schedule")
        return schedule, stop

    def _schedule(self, index: int, end: int, inside: bool, depth: int) -> tuple[syntax.Statement, int]:
        keyword = self._tokens[index].span
        if inside:
            self._reporter.error("MF0013", keyword, "a `meta_schedule` stands inside another")
        cache: tuple[syntax.Name, ...] | None = None
        grid: syntax.GridClause | None = None
        block: syntax.BlockClause | None = None
        min_blocks: syntax.MinBlocksClause | None = None
        here = index + 1
        if self._text(here, end) == "(":
            nearly_right.schedule_with_arguments(self._reporter, self._tokens, self._partners, here)
            close = self._partners[here]
            if close > here + 1 and self._tokens[here + 1].text not in CLAUSES:
                block = self._block_clause(index, close)
            here = close + 1
        while self._kind(here, end) is TokenKind.NAME and self._text(here + 1, end) == "(":
            word = self._tokens[here].text
            close = self._partners[here + 1]
            if word == "cache" and cache is None:
                cache = self._cache_clause(here + 2, close)
                here = close + 1
            elif word == "meta_grid" and grid is None:
                grid = self._grid_clause(here, close)
                here = close + 1
            elif word == "meta_block" and block is None:
                block = self._block_clause(here, close)
                here = close + 1
            elif word == "meta_min_blocks" and min_blocks is None:
                min_blocks = self._min_blocks_clause(here, close)
                here = close + 1
            elif word in CLAUSES:
                self._reporter.error("MF0010", self._tokens[here].span, f"a second `{word}`")
                here = close + 1
            elif word == STATIC:
                message = "`meta_static` stands in front of `meta_schedule`, not behind it"
                self._reporter.error("MF0226", self._hull(here, close + 1), message)
                here = close + 1
            elif word not in ("meta_for", *KEYWORDS) and self._text(close + 1, end) == "{":
                self._reporter.error(
                    "MF0011",
                    self._tokens[here].span,
                    f"`{word}` cannot follow `meta_schedule`; did you mean `{closest_clause(word)}`?",
                )
                here = close + 1
            else:
                break
        if here >= end:
            self._reporter.error("MF0014", keyword, "nothing follows `meta_schedule`")
            return syntax.Empty(keyword), end
        if self._text(here, end) == ";":
            nearly_right.schedule_that_ends(self._reporter, self._tokens, self._partners, index, here)
            loops = here + 1 < end and self._tokens[here + 1].text in ("meta_for", "{")
            return self._statement(here + 1, end, True, depth + 1) if loops else (syntax.Empty(keyword), here + 1)
        body, stop = self._statement(here, end, True, depth + 1)
        if not self._separate(index, stop):
            message = "this schedule is a part of what a macro gives, and not all of it"
            self._reporter.error("MF0017", self._tokens[stop - 1].span, message)
        span = self._hull(index, stop)
        return syntax.ScheduleStatement(cache, grid, body, keyword, span, block=block, min_blocks=min_blocks), stop

    def _for(self, index: int, end: int, inside: bool, depth: int, meta: bool) -> tuple[syntax.Statement, int]:
        keyword = self._tokens[index]
        if meta and not inside:
            self._reporter.error("MF0012", keyword.span, "a `meta_for` stands outside every `meta_schedule`")
        close = self._partners[index + 1]
        head = self._hull(index, close + 1)
        parts = self._split(index + 2, close)
        init: syntax.Declaration | syntax.Expression | None = None
        condition: syntax.Expression | None = None
        step: syntax.Expression | None = None
        if len(parts) != 3:
            if inside:
                self._refuse_head(keyword.text, index + 2, close)
            init = self._unknown(index + 1, close + 1)
        else:
            (first, first_end), (second, second_end), (third, third_end) = parts
            if first < first_end:
                init = self._loop_start(first, first_end, inside)
            if second < second_end:
                condition = self._expression(second, second_end, inside)
            if third < third_end:
                step = self._expression(third, third_end, inside)
        body, stop = self._body(close + 1, end, inside, depth)
        separate = self._separate(index, stop)
        return syntax.ForStatement(meta, init, condition, step, body, head, self._hull(index, stop), separate), stop

    def _refuse_head(self, keyword: str, first: int, close: int) -> None:
        """Report the head of a loop that has not three parts."""
        code = "MF0103" if keyword == "meta_for" else "MF0010"
        span = self._hull(first, close)
        advice = foreign_head(keyword, self._reporter.written(span))
        if advice is not None:
            self._reporter.advise(code, span, advice)
        else:
            self._reporter.error(code, self._hull(first - 2, close + 1), f"the head of a `{keyword}` has three parts")

    def _loop_start(self, index: int, end: int, inside: bool) -> syntax.Declaration | syntax.Expression:
        """Parse the first part of a loop's head; the semicolon behind it is at ``end``."""
        try:
            self._trust(index, end + 1, inside)
            simple = self._grammar.simple_statement(self._tokens[index : end + 1], self._types)
        except GrammarError as error:
            self._syntax_error(error, index, end, inside)
            return self._unknown(index, end)
        except TooDeepError:
            self._too_deep(index, end, inside)
            return self._unknown(index, end)
        except RefusedError:
            return self._unknown(index, end)
        return simple.expression if isinstance(simple, syntax.ExpressionStatement) else simple

    def _conditional(self, index: int, end: int, inside: bool, depth: int) -> tuple[syntax.Statement, int]:
        word = self._tokens[index].text
        close = self._partners[index + 1]
        condition = self._expression(index + 2, close, inside, self._hull(index + 1, close + 1))
        body, stop = self._body(close + 1, end, inside, depth)
        if word == "while":
            separate = self._separate(index, stop)
            return syntax.WhileStatement(condition, body, False, self._hull(index, stop), separate), stop
        if word == "switch":
            switch = syntax.SwitchStatement(condition, body, self._hull(index, stop))
            return as_branches(switch, {token.text for token in self._tokens}) if inside else switch, stop
        otherwise: syntax.Statement | None = None
        if self._text(stop, end) == "else":
            otherwise, stop = self._body(stop + 1, end, inside, depth)
        return syntax.IfStatement(condition, body, otherwise, self._hull(index, stop)), stop

    def _do(self, index: int, end: int, inside: bool, depth: int) -> tuple[syntax.Statement, int]:
        body, stop = self._body(index + 1, end, inside, depth)
        if self._text(stop, end) == "while" and self._text(stop + 1, end) == "(":
            close = self._partners[stop + 1]
            condition = self._expression(stop + 2, close, inside, self._hull(stop, close + 1))
            stop = close + 2 if self._text(close + 1, end) == ";" else close + 1
        else:
            condition = self._unknown(index, index + 1)
            if inside:
                self._reporter.error("MF0010", self._tokens[index].span, "this `do` has no `while`")
        separate = self._separate(index, stop)
        return syntax.WhileStatement(condition, body, True, self._hull(index, stop), separate), stop

    def _label(self, index: int, end: int, inside: bool, depth: int) -> tuple[syntax.Statement, int]:
        word = self._tokens[index].text
        here = index + 1
        while here < end and self._tokens[here].text not in (":", ";", "{", "}"):
            here += 1
        if self._text(here, end) != ":":
            return self._simple(index, end, inside)
        value = self._expression(index + 1, here, inside) if inside and word == "case" and here > index + 1 else None
        here += 1
        if here >= end:
            empty = syntax.Empty(self._tokens[index].span)
            return syntax.LabelledStatement(word, empty, self._hull(index, here), value), here
        body, stop = self._statement(here, end, inside, depth + 1)
        return syntax.LabelledStatement(word, body, self._hull(index, stop), value), stop

    def _jump(self, index: int, end: int, inside: bool) -> tuple[syntax.Statement, int]:
        word = self._tokens[index].text
        stop = self._semicolon(index, end)
        if stop is None:
            return self._simple(index, end, inside)
        value: syntax.Expression | None = None
        if word == "return" and stop > index + 1:
            value = self._expression(index + 1, stop, inside)
        elif word in ("break", "continue") and stop > index + 1:
            return self._simple(index, end, inside)
        return syntax.Jump(word, value, self._hull(index, stop + 1)), stop + 1

    def _misspelled(self, index: int, end: int, inside: bool, depth: int) -> tuple[syntax.Statement, int] | None:
        """Report what looks like a keyword spelled otherwise, and go on as if it were spelled right."""
        token = self._tokens[index]
        following = self._text(index + 1, end)
        if inside and following in ("for", "meta_for") and self._text(index + 2, end) == "(":
            nearly_right.word_before_loop(self._reporter, token, self._hull(index + 1, self._partners[index + 2] + 1))
            return self._for(index + 1, end, inside, depth, meta=True)
        if following in AFTER_SCHEDULE and similar(token.text, ("meta_schedule",), 0.8):
            return self._schedule(index, end, inside, depth)  # reported for the whole file already
        if following == "{":
            meant = similar(token.text, ("else", "do")) if inside else None
            if meant is not None:
                self._report_misspelled(token, meant)
                return self._statement(index + 1, end, inside, depth + 1)
            return None
        if following != "(":
            return None
        close = self._partners[index + 1]
        if self._text(close + 1, end) == "meta_schedule" and similar(token.text, (STATIC,), 0.8):
            self._report_misspelled(token, STATIC)
            return self._statement(close + 1, end, inside, depth + 1)
        if any(self._tokens[here].text == ";" for here in range(index + 2, close)):
            meant = similar(token.text, ("meta_for", "for"), 0.6 if inside else 0.75)
            if meant is not None:
                self._report_misspelled(token, meant)
                return self._for(index, end, inside, depth, meta=inside and meant == "meta_for")
            if inside:
                nearly_right.another_loop(self._reporter, token, self._hull(index, close + 1))
                return self._for(index, end, inside, depth, meta=True)
        elif inside and close + 1 < end:
            behind = self._tokens[close + 1]
            meant = similar(token.text, ("if", "while", "switch"), 0.6)
            if meant is not None and (behind.text == "{" or behind.kind is TokenKind.NAME):
                self._report_misspelled(token, meant)
                body, stop = self._body(close + 1, end, inside, depth)
                return body, stop
        return None

    def _report_misspelled(self, token: Token, meant: str) -> None:
        self._reporter.error("MF0011", token.span, f"`{token.text}` is no keyword; did you mean `{meant}`?")

    def _body(self, index: int, end: int, inside: bool, depth: int) -> tuple[syntax.Statement, int]:
        if index >= end:
            place = self._tokens[min(index, len(self._tokens)) - 1].span
            if inside:
                self._reporter.error("MF0010", place, "a statement is missing here")
            return syntax.Empty(place), index
        body, stop = self._statement(index, end, inside, depth + 1)
        if inside and isinstance(body, syntax.Declaration):
            self._reporter.error(
                "MF0010",
                body.span,
                "a declaration cannot be the body of a loop or a branch",
                way_out="put it in braces.",
            )
        return body, stop

    # --- pieces -----------------------------------------------------------------------------------------------

    def _simple(self, index: int, end: int, inside: bool) -> tuple[syntax.Statement, int]:
        stop = self._semicolon(index, end)
        behind = end if stop is None else stop + 1
        schedule = next((here for here in range(index + 1, behind) if is_schedule_keyword(self._tokens, here)), None)
        if schedule is not None:
            # A schedule must never vanish in text that is merely carried over.
            self._reporter.error(
                "MF0010", self._hull(index, schedule), "what stands before `meta_schedule` is not understood"
            )
            return syntax.Empty(self._tokens[index].span), schedule
        if stop is None:
            if inside:
                last = self._tokens[end - 1].span
                place = Span(last.end_line, last.end_column, last.end_line, last.end_column, last.end, last.end)
                self._reporter.error("MF0010", place, f"a `;` is missing after `{self._tokens[end - 1].text}`")
            return self._opaque(index, end, inside), end
        tokens: Sequence[Token] = self._tokens[index : stop + 1]
        if self._fragment and not inside and (comma := self._trailing_comma(index, stop)) is not None:
            stop = comma
            close = self._tokens[comma]
            tokens = [*self._tokens[index:comma], Token(TokenKind.PUNCTUATOR, ";", close.span)]
        if inside and (placed := storage_words(tokens)):
            for at, advice in placed.items():
                self._reporter.advise("MF0217", tokens[at].span, advice)
            tokens = [token for at, token in enumerate(tokens) if at not in placed and token.text != "extern"]
        try:
            self._trust(index, stop + 1, inside)
            simple = self._declaration_or_expression(tokens)
        except GrammarError as error:
            self._syntax_error(error, index, stop, inside)
            mistake = self._nameless(index, stop) or (error.message, error.span)
            return self._opaque(index, stop + 1, inside, mistake), stop + 1
        except TooDeepError:
            self._too_deep(index, stop + 1, inside)
            return self._opaque(index, stop + 1, inside), stop + 1
        except RefusedError:
            return self._opaque(index, stop + 1, inside), stop + 1
        if isinstance(simple, syntax.Declaration):
            added = {one.name for one in simple.declarators if "typedef" in one.type.storage}
            self._types |= added
        return simple, stop + 1

    def _declaration_or_expression(self, tokens: Sequence[Token]) -> syntax.Declaration | syntax.ExpressionStatement:
        """Parse a simple statement; where it makes no sense otherwise, its first word is taken for a type's name."""
        try:
            return self._grammar.simple_statement(tokens, self._types)
        except GrammarError:
            words = [token for token in tokens if token.text not in ("const", "static", "volatile", "register")]
            if len(words) < 3 or words[0].kind is not TokenKind.NAME or words[0].text in KEYWORDS:
                raise
            if words[0].unknown:
                raise
            if words[1].kind is not TokenKind.NAME and words[1].text != "*":
                raise
            if words[1].text in TYPE_WORDS | _OTHER_TYPE_WORDS or words[1].text in self._types:
                raise  # a macro in front of a type: it may be an attribute that does something
            try:
                return self._grammar.simple_statement(tokens, self._types, frozenset({words[0].text}))
            except GrammarError:
                pass
            raise

    def _nameless(self, index: int, stop: int) -> tuple[str, Span] | None:
        """Return what is wrong with a declaration whose type is followed by no name: ``int = n / 2;``."""
        here = index
        while here < stop and self._tokens[here].text in TYPE_WORDS:
            here += 1
        if here == index or self._text(here, stop) not in ("=", ","):
            return None
        return f"a name is missing before `{self._tokens[here].text}`", self._tokens[here].span

    def _trailing_comma(self, index: int, stop: int) -> int | None:
        """Return the index of a comma that ends a declaration where the next one follows on a line of its own."""
        if self._tokens[index].text not in TYPE_WORDS:
            return None
        for here in range(index, stop):
            if self._tokens[here].text == "=":
                return None  # an initialised declaration stays in the host text, so it must be proper C
            if self._tokens[here].text == "," and self._tokens[here + 1].text in TYPE_WORDS:
                return here
        return None

    # --- tokens -----------------------------------------------------------------------------------------------
