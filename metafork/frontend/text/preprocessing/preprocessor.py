"""Macros, conditional compilation and own headers, as far as schedules need them.

Nothing is rewritten: the host text is carried over verbatim.  The tokens of a stretch of text are expanded where it
is parsed.  Own headers are read for their macros, which hold from the ``#include`` on, and for their declarations.  A
macro that is defined under a condition that cannot be decided has no certain value; its name stays, with a fault that
is reported where a schedule depends on it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from metafork.frontend.text.definitions import split_commas
from metafork.frontend.text.preprocessing.branches import (
    CONDITIONAL_WORDS,
    Branch,
    Conditional,
    Directive,
    Place,
    directive_of,
    opened,
)
from metafork.frontend.text.preprocessing.headers import Header, Headers, is_of_the_system, missing
from metafork.frontend.text.preprocessing.macros import (
    NEVER_EXPANDED,
    TOKEN_LIMIT,
    VARIABLE,
    Definition,
    ExpansionError,
    Macro,
    Pending,
    step,
)
from metafork.frontend.text.tokens import (
    CLOSING,
    OPENING,
    BracketError,
    Token,
    TokenKind,
    UnterminatedCommentError,
    match_brackets,
    tokenize,
)
from metafork.frontend.text.vocabulary import CONSTANTS
from metafork.ir.messages.source import Span
from metafork.ir.translation_unit import Assumption

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_DEFINE = re.compile(r"(?P<name>[A-Za-z_]\w*)(?P<formals>\([^)]*\))?(?P<body>.*)\Z", re.DOTALL)
_UNTOUCHED = NEVER_EXPANDED - {"assert"}


class _Event(Struct, frozen=True):
    offset: int
    name: str
    macro: Macro | None


class Included(Struct, frozen=True):
    """What an ``#include`` of the file brings, headers in headers too; all tokens have the span of the directive.

    ``uncertain`` says of each token whether it stands under a condition that cannot be decided, ``stages`` how many
    definitions of macros came before it; ``read`` is false where an own header, the one that is named or one inside it,
    could not be read, and ``missing`` are those of which no compiler may have one of its own.
    """

    directive: Directive
    tokens: tuple[Token, ...]
    uncertain: tuple[bool, ...]
    stages: tuple[int, ...]
    read: bool
    missing: tuple[str, ...] = ()


class _Text(Struct, frozen=True):
    """What is being scanned: the file itself, or a header that is included ``at`` a place of the file."""

    folder: Path
    guard: str
    depth: int
    at: Span | None = None


class Preprocessed:
    """The active tokens of a file (directives left out), its directives, conditionals, headers and macros.

    ``given`` are directives that a command line stands for.  What it may define besides is not known: ``undecided`` are
    the names on which conditions depend for that reason.  Where it is ``assuming`` that it defines nothing, those are
    the ``assumptions``, but for conditions around schedules.

    ``reduced`` is true where only the first branch of every undecided conditional is among the tokens.
    """

    def __init__(
        self,
        tokens: Sequence[Token],
        headers: Headers | None = None,
        given: Sequence[Token] = (),
        assuming: bool = False,
    ) -> None:
        self.tokens: list[Token] = []
        self._alternatives: list[Span] = []  # tokens of second and later branches of undecided conditionals
        self.directives: list[Directive] = []
        self.conditionals: list[Conditional] = []
        self.unbalanced: list[Directive] = []
        self.included: list[Included] = []
        self.reduced = False
        self._headers = headers
        self._events: list[_Event] = []
        self._table: dict[str, Macro | None] = {}
        self._brought: list[tuple[Token, bool, int]] = []
        self._missed = False
        self._missing: list[str] = []
        self.undecided: set[str] = set()
        self._assuming = assuming
        self._assumed: dict[str, tuple[Assumption, Directive]] = {}
        home = Path() if headers is None else headers.home
        self._enumerated: list[_Event] = []
        for directive in map(directive_of, given):
            self._define(directive, certain=True)
        self._around = _around_schedules(tokens)
        self._scan(tokens, _Text(home, "", 0), Place(active=True, alternative=False, certain=True))

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What was assumed of names, in the order of the text."""
        return tuple(assumption for assumption, _ in self._assumed.values())

    # --- directives -------------------------------------------------------------------------------------------

    def _scan(self, tokens: Iterable[Token], text: _Text, outermost: Place) -> None:
        stack: list[Branch] = []
        places = [outermost]  # one more than there are open conditionals
        own = text.at is None
        for index, token in enumerate(tokens):
            if token.kind is not TokenKind.DIRECTIVE:
                if places[-1].active:
                    self._keep(token, text, places[-1])
                continue
            directive = directive_of(token if text.at is None else replace(token, span=text.at))
            active = places[-1].active
            match directive.word:
                case "if" | "ifdef" | "ifndef":
                    guards = not own and index == 0 and text.guard and text.guard not in self._table
                    stack.append(opened(directive, True if guards else self._verdict(directive, active)))
                    places.append(places[-1].inside(stack[-1]))
                case "elif" | "elifdef" | "elifndef" | "else" if stack:
                    open_ = places[-2].active and not stack[-1].taken
                    stack[-1].next(directive, self._verdict(directive, open_))
                    places[-1] = places[-2].inside(stack[-1])
                case "endif" if stack:
                    branch = stack.pop()
                    places.pop()
                    if not branch.decided and places[-1].active and own:
                        start, end = branch.opening.span.start, directive.span.end
                        marks = (start, *branch.marks, directive.span.start)
                        self.conditionals.append(Conditional(branch.opening.span, start, end, marks))
                case "elif" | "elifdef" | "elifndef" | "else" | "endif" if own:
                    self.unbalanced.append(directive)
                case "define" if active:
                    self._define(directive, places[-1].certain, stack[-1].opening if stack else None)
                case "undef" if active:
                    self._undefine(directive, certain=places[-1].certain)
                case "include" | "include_next" | "import" if active:
                    self._include(directive, text, places[-1])
                case _:
                    pass
            if active and own:
                self.directives.append(directive)
        if own:
            self.unbalanced.extend(branch.opening for branch in stack)

    def _keep(self, token: Token, text: _Text, place: Place) -> None:
        if text.at is not None:
            self._brought.append((replace(token, span=text.at), not place.certain, len(self._events)))
            return
        self.tokens.append(token)
        if place.alternative:
            self._alternatives.append(token.span)

    def _verdict(self, directive: Directive, active: bool) -> bool | None:
        if directive.word == "else":
            return None
        names = [name for name in _conditional_names(directive) if name not in self._table] if active else []
        self.undecided.update(names)
        if self._assuming and directive.span.start not in self._around:
            for name in names:
                self._assumed[name] = Assumption(name, directive.span.start), directive
                self._table[name] = None
        from metafork.frontend.text.preprocessing.directive_conditions import condition_holds  # few files have any

        return condition_holds(directive.word, directive.rest.strip(), self._table)

    def _include(self, directive: Directive, text: _Text, place: Place) -> None:
        """Read a header in place; of one that cannot be read it is only known that it is there."""
        header: Header | None = None
        if self._headers is not None and directive.word == "include":
            header = self._headers.read(directive.rest, text.folder, text.depth)
        if text.at is None:
            self._brought, self._missed, self._missing = [], False, []
        if header is not None:
            inside = _Text(header.path.parent, header.guard, text.depth + 1, text.at or directive.span)
            self._scan(header.tokens, inside, replace(place, alternative=False))
        else:
            self._missed = self._missed or not is_of_the_system(directive.rest)
            name = missing(directive.rest) if self._headers is not None and directive.word == "include" else ""
            self._missing += [name] if name else []
        if text.at is None:
            tokens = tuple(token for token, _, _ in self._brought)
            uncertain = tuple(flag for _, flag, _ in self._brought)
            stages = tuple(stage for _, _, stage in self._brought)
            found = (not self._missed, tuple(self._missing))
            self.included.append(Included(directive, tokens, uncertain, stages, *found))

    def _define(self, directive: Directive, certain: bool, within: Directive | None = None) -> None:
        match = _DEFINE.match(directive.rest)
        if match is None:
            return
        name = match["name"]
        formals: tuple[str, ...] | None = None
        fault = ""
        if match["formals"] is not None:
            formals = tuple(part.strip() for part in match["formals"][1:-1].split(",") if part.strip())
            if formals[-1:] == ("...",):
                formals = (*formals[:-1], VARIABLE)
            if any(not re.fullmatch(r"[A-Za-z_]\w*", formal) for formal in formals):
                fault = f"`{name}` takes a variable number of arguments"
        try:
            body = tuple(tokenize(match["body"]))
        except UnterminatedCommentError:
            body, fault = (), f"the definition of `{name}` holds a comment without an end"
        if any(one.text in ("#", "__VA_OPT__") or one.kind is TokenKind.DIRECTIVE for one in body):
            fault = fault or f"`{name}` quotes its arguments"
        span = directive.span
        definition = Definition(formals, tuple(replace(one, span=span) for one in body))
        if name in self._assumed and formals is None and within is not None and _gives_a_default(within, name):
            assumption, place = self._assumed[name]
            if place is within and not assumption.value:
                self._assumed[name] = replace(assumption, value=_integer_text(body)), place
        spelled = "".join(one.text for one in body)
        certain = certain or (formals is None and spelled == CONSTANTS.get(name))
        if certain:
            macro = Macro(name, (definition,), fault, span)
        else:
            before = self._table.get(name)
            earlier = () if before is None else before.definitions
            fault = f"`{name}` is defined under a condition"
            macro = Macro(name, (*earlier, definition), fault, span, uncertain=True)
        self._table[name] = macro
        self._events.append(_Event(span.start, name, macro))

    def _undefine(self, directive: Directive, certain: bool) -> None:
        name = directive.rest.strip()
        before = self._table.get(name)
        if certain:
            self._table[name] = None
            self._events.append(_Event(directive.span.start, name, None))
        elif before is not None:
            macro = replace(before, fault=f"`{name}` is undefined under a condition", uncertain=True)
            self._table[name] = macro
            self._events.append(_Event(directive.span.start, name, macro))

    def define_enumerators(self, partners: Mapping[int, int]) -> None:
        """Treat enumeration constants as macros for their values; ``partners`` are the brackets of the tokens."""
        added: list[_Event] = []
        for one in self.included:
            try:
                inside = match_brackets(one.tokens)
            except BracketError:
                continue
            added += self._enumerations(one.tokens, inside, one.uncertain)
        uncertain = (
            [self.within_conditional(token.span) is not None for token in self.tokens] if self.conditionals else ()
        )
        added += self._enumerations(self.tokens, partners, uncertain)
        self._enumerated = added

    def _enumerations(
        self, tokens: Sequence[Token], partners: Mapping[int, int], uncertain: Sequence[bool]
    ) -> Iterator[_Event]:
        for index, token in enumerate(tokens[:-2]):
            if token.text != "enum":
                continue
            brace = index + 1 if tokens[index + 1].text == "{" else index + 2
            if tokens[brace].text == "{":
                certain = not uncertain or not uncertain[index]
                yield from self._enumerators(tokens, brace + 1, partners[brace], certain)

    def _enumerators(self, tokens: Sequence[Token], index: int, end: int, certain: bool) -> Iterator[_Event]:
        last: tuple[Token, ...] = (Token(TokenKind.NUMBER, "-1", tokens[index - 1].span),)
        behind = tokens[end].span.end
        for first, stop in split_commas(tokens, index, end):
            if first == stop:
                continue  # a comma before the brace
            name = tokens[first]
            parts = (name, *tokens[first + 2 : stop])
            opening, plus, one, closing = (
                Token(kind, text, name.span)
                for kind, text in (
                    (TokenKind.PUNCTUATOR, "("),
                    (TokenKind.PUNCTUATOR, "+"),
                    (TokenKind.NUMBER, "1"),
                    (TokenKind.PUNCTUATOR, ")"),
                )
            )
            if stop > first + 2 and tokens[first + 1].text == "=":
                body = (opening, *parts[1:], closing)
            elif last[0].text == "-1":
                body = (Token(TokenKind.NUMBER, "0", name.span),)
            else:
                body = (opening, *last, plus, one, closing)
            fault = "" if certain else f"`{name.text}` is defined under a condition"
            yield _Event(
                behind, name.text, Macro(name.text, (Definition(None, body),), fault, name.span, uncertain=not certain)
            )
            last = (name,)

    def macros_at(self, offset: int) -> dict[str, Macro]:
        """Return the macros that are defined at an offset of the text."""
        known: dict[str, Macro] = {}
        for event in self._all_events():
            if event.offset >= offset:
                break
            self._apply(event, known)
        return known

    def _all_events(self) -> list[_Event]:
        return sorted([*self._events, *self._enumerated], key=lambda event: event.offset)

    def macros_within(self, span: Span) -> dict[str, Span]:
        """Return the macros that may stand for a name in a stretch of the text, and where they are defined."""
        found = self.macros_at(span.start)
        for event in self._all_events():
            if span.start <= event.offset < span.end and event.macro is not None:
                found[event.name] = event.macro
        return {name: one.span for name, one in found.items() if one.uncertain or one.formals is None}

    def defined(self) -> list[tuple[str, Span]]:
        """Return the macros that are defined anywhere, and where."""
        return [(one.name, one.macro.span) for one in self._events if one.macro is not None]

    def macros_with(self, word: str) -> set[str]:
        """Return the names of the macros in whose text, or in that of macros in it, a word stands."""
        found = {word}
        bodies = [
            (event.name, {token.text for one in event.macro.definitions for token in one.body})
            for event in self._events
            if event.macro is not None
        ]
        grew = True
        while grew:
            names = {name for name, body in bodies if body & found and name not in found}
            grew = bool(names)
            found |= names
        return found - {word}

    @staticmethod
    def _apply(event: _Event, known: dict[str, Macro]) -> None:
        if event.macro is None:
            known.pop(event.name, None)
        elif event.name not in _UNTOUCHED:
            known[event.name] = event.macro

    def first_branches(self) -> Preprocessed:
        """Return the same with the first branch only of every undecided conditional."""
        left_out = {span.start for span in self._alternatives}
        single = copy.copy(self)
        single.tokens = [token for token in self.tokens if token.span.start not in left_out]
        single.reduced = True
        return single

    def within_conditional(self, span: Span) -> Conditional | None:
        """Return an undecided conditional around (or overlapping) a span, if there is one."""
        for conditional in self.conditionals:
            if conditional.start < span.end and span.start < conditional.end:
                return conditional
        return None

    # --- expansion --------------------------------------------------------------------------------------------

    def expand(self, tokens: Sequence[Token]) -> list[Token]:
        """Return tokens of this file with their macros expanded; what cannot be expanded stays, with a fault."""
        if not tokens:
            return []
        known = self.macros_at(tokens[0].span.start)
        events = [event for event in self._all_events() if event.offset >= tokens[0].span.start]
        return self._expanded(tokens, known, events)

    def expand_included(self, included: Included, first: int, behind: int) -> list[Token]:
        """Return a declaration of a header, given by indices of tokens, with its macros expanded."""
        known: dict[str, Macro] = {}
        stage = included.stages[first]
        if stage != included.stages[behind - 1]:
            raise ExpansionError("MF0008", "macros change within this declaration", included.directive.span)
        for event in self._enumerated:
            if event.offset <= included.directive.span.end:
                self._apply(event, known)
        for event in self._events[:stage]:
            self._apply(event, known)
        return self._expanded(included.tokens[first:behind], known, [])

    def _expanded(self, tokens: Sequence[Token], known: dict[str, Macro], events: list[_Event]) -> list[Token]:
        if not known and not events:
            return list(tokens)
        pending = [Pending(token, frozenset()) for token in reversed(tokens)]
        result: list[Pending] = []
        while pending:
            while events and events[0].offset < pending[-1].token.span.start:
                self._apply(events.pop(0), known)
            step(pending, known, result)
            if len(result) + len(pending) > len(tokens) + TOKEN_LIMIT:
                raise ExpansionError("MF0008", "macros expand to too much text", tokens[0].span)
        return [one.token for one in result]


def definition_of(given: str) -> Token:
    """Return the directive that ``NAME``, ``NAME=VALUE`` or ``NAME(X)=VALUE`` of a command line stands for."""
    head, equals, value = given.partition("=")
    text = f"#define {head} {value if equals else '1'}"
    return Token(TokenKind.DIRECTIVE, text, Span(1, 1, 1, 1, -1, 0))


def _around_schedules(tokens: Sequence[Token]) -> set[int]:
    """Return where directives of conditions stand around or inside of schedules, whose text is replaced."""
    found: set[int] = set()
    stack: list[list[int]] = []
    inside, depth = False, 0  # of brackets, from the word of a schedule to its end
    for token in tokens:
        if not inside:
            inside, depth = token.text in ("meta_schedule", "meta_static"), 0
        else:
            depth += (token.text in OPENING) - (token.text in CLOSING)
            inside = depth > 0 or (depth == 0 and token.text not in ("}", ";"))
            if token.kind is TokenKind.DIRECTIVE:
                found.add(token.span.start)
        if token.kind is TokenKind.DIRECTIVE and "meta_" not in token.text:
            word = directive_of(token).word
            if word in ("if", "ifdef", "ifndef"):
                stack.append([token.span.start])
            elif word == "endif" and stack:
                stack.pop()
            elif word in CONDITIONAL_WORDS and stack:
                if stack[-1][0] in found:
                    found.add(token.span.start)
                stack[-1].append(token.span.start)
        elif "meta_schedule" in token.text or token.text == "meta_for":
            found.update(start for starts in stack for start in starts)
    return found


def _conditional_names(directive: Directive) -> list[str]:
    """Return the names on which a condition depends that only a command line defines, if anything does.

    Those of compilers begin with ``_``; headers may define those of the library.
    """
    if "__has_" in directive.rest:
        return []
    names = re.findall(r"(?<![\w.'\"])[A-Za-z]\w*", directive.rest)
    return [name for name in names if name not in _OF_OTHERS]


_OF_OTHERS = frozenset({"defined", "NDEBUG", "NULL", "EOF", "RAND_MAX", "unix", "linux", *CONSTANTS})


def _gives_a_default(directive: Directive, name: str) -> bool:
    """Return whether a condition is that a name is no macro."""
    negated = re.fullmatch(r"!\s*defined\s*(?:\(\s*(\w+)\s*\)|\s(\w+))", directive.rest)
    if directive.word == "if":
        return negated is not None and name in negated.groups()
    return directive.word == "ifndef" and directive.rest == name


def _integer_text(body: Sequence[Token]) -> str:
    """Return the text of a macro that is an integer constant, perhaps negative or in parentheses; else nothing."""
    text = "".join(one.text for one in body)
    return text if re.fullmatch(r"-?\d+[uUlL]*|\(-?\d+[uUlL]*\)|0[xX][0-9a-fA-F]+", text) else ""
