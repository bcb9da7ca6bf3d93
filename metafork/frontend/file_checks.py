"""What is refused in the text of a file before it is parsed: words and directives that nothing can be made of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from metafork.frontend.text.clauses.keywords import AFTER_SCHEDULE, is_schedule_keyword, similar
from metafork.frontend.text.clauses.static_clauses import WORD as STATIC
from metafork.frontend.text.clauses.static_clauses import begins
from metafork.frontend.text.definitions import FunctionText
from metafork.frontend.text.other_languages.files import PlainFile, keyword_pragma
from metafork.frontend.text.other_languages.types import around_functions
from metafork.frontend.text.preprocessing.branches import CONDITIONAL_WORDS, Directive
from metafork.frontend.text.preprocessing.preprocessor import Preprocessed
from metafork.frontend.text.reporter import RefusedError, Reporter
from metafork.frontend.text.tokens import TokenKind, first_from
from metafork.ir.messages.source import Span

_OF_THE_DISPATCH = frozenset(
    f"metafork_{word}"
    for word in (
        "enter",
        "forget",
        "leave",
        "local",
        "settle",
        "touch",
        "touch_all",
        "unchanged",
        "touch_steps",
        "trips",
        "calls",
        "freed",
    )
)


_WITHOUT_EFFECT = frozenset({"pragma", "line", "", *CONDITIONAL_WORDS})
"""Directives that change nothing about the text behind them, line markers (``# 6 "small.c"``) among them."""

_BEFORE_STATEMENT = frozenset({"{", "}", ";", ")", ":", "else", "do"})
"""What stands in front of a statement."""


class FileChecks(Struct, frozen=True):
    """Checks of one preprocessed file; each reports what it finds, or raises ``RefusedError``."""

    preprocessed: Preprocessed
    reporter: Reporter

    def spelling(self) -> None:
        """Refuse words that are nearly ``meta_schedule`` and stand where it would."""
        tokens = self.preprocessed.tokens
        for index, token in enumerate(tokens[:-1]):
            if token.kind is not TokenKind.NAME or token.text == "meta_schedule":
                continue
            following = tokens[index + 1]
            if following.text not in AFTER_SCHEDULE:
                continue
            if similar(token.text, ("meta_schedule",), 0.8):
                self.reporter.error(
                    "MF0011", token.span, f"`{token.text}` is no keyword; did you mean `meta_schedule`?"
                )

    def taken(self) -> None:
        """Refuse the names of functions and types that a dispatch calls and uses in the text."""
        for token in self.preprocessed.tokens:
            if token.text.startswith("metafork_run_") or token.text in _OF_THE_DISPATCH:
                message = f"`{token.text}` is a name that the generated code uses"
                raise self.reporter.refuse("MF0313", token.span, message)

    def generated(self, unit: str, schedules: int) -> None:
        """Refuse names that the outputs of a unit with so many schedules have: functions, kernels, tables, markers."""
        ours = re.compile(rf"{unit}_k(\d+)_\w+|METAFORK_(?:(?:GENERATION|GENERATED|RUNTIME|OWN)_\w+|HEADERS)")
        preprocessed = self.preprocessed
        named = [(token.text, token.span) for token in preprocessed.tokens]
        named += [(token.text, token.span) for one in preprocessed.included for token in one.tokens]
        for name, span in [*named, *preprocessed.defined()]:
            found = ours.fullmatch(name)
            if found is not None and (found[1] is None or int(found[1]) < schedules):
                self.reporter.error("MF0313", span, f"`{name}` is a name that the generated code uses")

    def schedules(self, span: Span) -> list[int]:
        """Return the tokens of a span that begin a schedule: ``meta_schedule``, and macros with one in them."""
        tokens = self.preprocessed.tokens
        hiding = self.preprocessed.macros_with("meta_schedule")
        return [
            index
            for index in range(first_from(tokens, span.start), first_from(tokens, span.end))
            if is_schedule_keyword(tokens, index) or (hiding and tokens[index].text in hiding)
        ]

    def hidden(self, bodies: Sequence[Span]) -> None:
        """Refuse schedules in headers, and in macros that are no statements of the ``bodies`` of functions.

        The text of a macro's use is replaced by a dispatch, as that of a schedule is; nothing else can be.
        """
        hiding = self.preprocessed.macros_with("meta_schedule")
        tokens = self.preprocessed.tokens
        for index, token in enumerate(tokens if hiding else ()):
            if token.text not in hiding:
                continue
            message = f"`{token.text}` is a macro with a `meta_schedule` in it"
            inside = any(body.start < token.span.start < body.end for body in bodies)
            macro = self.preprocessed.macros_at(token.span.start).get(token.text)
            if not inside:
                self.reporter.error("MF0017", token.span, f"{message}, and stands in no function")
            elif macro is None or macro.fault or macro.uncertain:
                why = "it is defined behind this place" if macro is None else macro.fault or "it has two definitions"
                self.reporter.error("MF0017", token.span, f"{message}, but {why}")
            elif tokens[index - 1].text not in _BEFORE_STATEMENT:
                self.reporter.error("MF0017", token.span, f"{message}, and no statement of its own")
        for included in self.preprocessed.included:
            for index, token in enumerate(included.tokens):
                if is_schedule_keyword(included.tokens, index) or token.text in hiding:
                    message = f"a `meta_schedule` stands in {included.directive.rest.strip()}"
                    self.reporter.error("MF0017", included.directive.span, message)

    def around(self, stray: Sequence[int]) -> None:
        """Refuse a namespace or a class of C++ around functions with schedules."""
        tokens = self.preprocessed.tokens
        for at in range(stray[0] if stray else 0):
            begins = at == 0 or tokens[at - 1].text in ("}", ";")
            if begins and tokens[at].text in ("namespace", "class") and tokens[at + 1].kind is TokenKind.NAME:
                raise self.reporter.advise("MF0010", tokens[at].span, around_functions(tokens[at].text))

    def without_schedule(
        self, whole: Span, partners: Mapping[int, int], functions: Sequence[FunctionText]
    ) -> RefusedError:
        """Refuse a file without a schedule, with what its loops are marked by instead."""
        tokens = self.preprocessed.tokens
        text = self.reporter.written(whole)
        found = PlainFile(text, tokens, partners, functions, self.preprocessed.directives).advice()
        if found is not None:
            return self.reporter.advise("MF0002", *found)
        place = tokens[0].span if tokens else replace(whole, end_line=1, end_column=1, end=0)
        return self.reporter.refuse("MF0002", place, "there is no `meta_schedule` in this file")

    def hides(self, function: FunctionText) -> bool:
        """Say whether a function uses a macro with a schedule in it: its loops may be that's."""
        hiding = self.preprocessed.macros_with("meta_schedule")
        within = self.preprocessed.tokens[function.first : function.close_brace] if hiding else ()
        return any(token.text in hiding for token in within)

    def loops(self, parsed: Sequence[tuple[int, int]]) -> None:
        """Refuse ``meta_for`` and ``meta_static`` in text that is not parsed: carried over, they mean nothing there."""
        tokens = self.preprocessed.tokens
        for index, token in enumerate(tokens[:-1]):
            if token.text not in ("meta_for", STATIC) or tokens[index + 1].text != "(":
                continue
            if any(first <= index < behind for first, behind in parsed):
                continue
            if token.text == "meta_for" and (pragma := self._pragma_before(index)) is not None:
                self._refuse_pragma(*pragma, token.span)
            elif token.text == "meta_for":
                self.reporter.error("MF0012", token.span, "a `meta_for` stands outside every `meta_schedule`")
            elif begins(tokens, index + 2, len(tokens)):
                self.reporter.error("MF0226", token.span, "this `meta_static` stands in front of no schedule")

    def _pragma_before(self, index: int) -> tuple[Directive, bool] | None:
        """Return the pragma that is meant for the schedule of a ``meta_for``; whether a brace stands between them."""
        tokens = self.preprocessed.tokens
        for brace in (False, True):
            here = index - brace
            if brace and tokens[here].text != "{":
                continue
            least = tokens[here - 1].span.end if here > 0 else 0
            for one in self.preprocessed.directives:
                between = least <= one.span.start < tokens[here].span.start
                if between and (keyword_pragma(one) or "").startswith("meta_schedule"):
                    return one, brace
        return None

    def _refuse_pragma(self, pragma: Directive, brace: bool, loop: Span) -> None:
        self.reporter.error(
            "MF0012",
            pragma.span,
            "`meta_schedule` is a keyword, not a pragma",
            reason="C ignores this pragma.",
            way_out=f"write in place of it{' and of the brace' * brace}:\n{keyword_pragma(pragma)}{' {' * brace}",
            related=((loop, "so this `meta_for` is outside of every schedule"),),
        )

    def directives(self, span: Span) -> None:
        """Refuse conditional compilation around or inside a schedule, and directives inside one."""
        if self.preprocessed.reduced and (conditional := self.preprocessed.within_conditional(span)) is not None:
            raise self.reporter.refuse(
                "MF0006", conditional.opening, "the branches of this condition open and close different brackets"
            )
        for token in (self.preprocessed.tokens[index] for index in self.schedules(span)):
            conditional = self.preprocessed.within_conditional(token.span)
            if conditional is not None:
                self.reporter.error(
                    "MF0006",
                    conditional.opening,
                    "a schedule stands under this condition",
                    related=((token.span, "the schedule"),),
                )

    def schedule(self, schedule: Span) -> None:
        """Refuse directives and conditional compilation inside a schedule."""
        for directive in self.preprocessed.directives:
            inside = schedule.start <= directive.span.start < schedule.end
            if inside and directive.word not in _WITHOUT_EFFECT:
                self.reporter.error("MF0007", directive.span, f"`#{directive.word}` stands inside a schedule")
        for conditional in self.preprocessed.conditionals:
            if schedule.start <= conditional.start < schedule.end:
                self.reporter.error("MF0006", conditional.opening, "conditional compilation inside a schedule")
