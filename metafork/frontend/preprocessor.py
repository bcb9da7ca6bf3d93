"""Macros and conditional compilation, as far as schedules need them.

Nothing is rewritten: the host text is carried over verbatim.  The tokens of a stretch of text are expanded where it
is parsed, and tokens that a macro's body gives have the span of the macro's use.  A macro that is defined under a
condition has no certain value; its name stays, with a fault that is reported where a schedule depends on it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from metafork.frontend.definitions import split_commas
from metafork.frontend.tokens import Token, TokenKind, UnterminatedCommentError, hull, tokenize
from metafork.ir.source import Span

_SPLICE = re.compile(r"\\\r?\n")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_HEAD = re.compile(r"#\s*(?P<word>[A-Za-z_]*)\s*(?P<rest>.*)\Z", re.DOTALL)
_DEFINE = re.compile(r"(?P<name>[A-Za-z_]\w*)(?P<formals>\([^)]*\))?(?P<body>.*)\Z", re.DOTALL)
_NEVER_EXPANDED = frozenset({"meta_schedule", "meta_for", "cache", "assert", "defined"})
CONDITIONAL_WORDS = frozenset({"if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif"})
_TOKEN_LIMIT = 50_000


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro: its body, its formal parameters where it has some, and why it cannot be trusted, if so."""

    name: str
    formals: tuple[str, ...] | None
    body: tuple[Token, ...]
    fault: str
    span: Span


@dataclass(frozen=True, slots=True)
class _Event:
    offset: int
    name: str
    macro: Macro | None


@dataclass(frozen=True, slots=True)
class Directive:
    """A preprocessing directive: its word (``include``), the rest of its line, where it stands."""

    word: str
    rest: str
    span: Span


@dataclass(frozen=True, slots=True)
class Conditional:
    """A stretch from an ``#if`` to its ``#endif`` whose branches cannot be decided here."""

    opening: Span
    start: int
    end: int


class ExpansionError(Exception):
    """A macro use that cannot be expanded: ``code`` and ``span`` of the diagnostic."""

    def __init__(self, code: str, message: str, span: Span) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.span = span


class Preprocessed:
    """The active tokens of a file (directives left out), its directives, conditionals and macros.

    ``reduced`` is true where only the first branch of every undecided conditional is among the tokens.
    """

    def __init__(self, tokens: Iterable[Token]) -> None:
        self.tokens: list[Token] = []
        self._alternatives: list[Span] = []  # tokens of second and later branches of undecided conditionals
        self.directives: list[Directive] = []
        self.conditionals: list[Conditional] = []
        self.unbalanced: list[Directive] = []
        self.reduced = False
        self._events: list[_Event] = []
        self._scan(tokens)

    # --- directives -------------------------------------------------------------------------------------------

    def _scan(self, tokens: Iterable[Token]) -> None:
        stack: list[_Branch] = []
        places = [_Place(active=True, alternative=False, certain=True)]  # one more than there are open conditionals
        for token in tokens:
            if token.kind is not TokenKind.DIRECTIVE:
                if places[-1].active:
                    self.tokens.append(token)
                    if places[-1].alternative:
                        self._alternatives.append(token.span)
                continue
            directive = _directive(token)
            active = places[-1].active
            match directive.word:
                case "if" | "ifdef" | "ifndef":
                    stack.append(_opened(directive))
                    places.append(places[-1].inside(stack[-1]))
                case "elif" | "elifdef" | "elifndef" | "else" if stack:
                    stack[-1].next(directive)
                    places[-1] = places[-2].inside(stack[-1])
                case "endif" if stack:
                    branch = stack.pop()
                    places.pop()
                    if not branch.decided and places[-1].active:
                        self.conditionals.append(
                            Conditional(branch.opening.span, branch.opening.span.start, directive.span.end)
                        )
                case "elif" | "elifdef" | "elifndef" | "else" | "endif":
                    self.unbalanced.append(directive)
                case "define" if active:
                    self._define(directive, token, certain=places[-1].certain)
                case "undef" if active:
                    self._events.append(_Event(directive.span.start, directive.rest.strip(), None))
                case _:
                    pass
            if active:
                self.directives.append(directive)
        self.unbalanced.extend(branch.opening for branch in stack)

    def _define(self, directive: Directive, token: Token, certain: bool) -> None:
        match = _DEFINE.match(directive.rest)
        if match is None:
            return
        name = match["name"]
        formals: tuple[str, ...] | None = None
        fault = "" if certain else f"`{name}` is defined under a condition"
        if match["formals"] is not None:
            formals = tuple(part.strip() for part in match["formals"][1:-1].split(",") if part.strip())
            if any(not re.fullmatch(r"[A-Za-z_]\w*", formal) for formal in formals):
                fault = fault or f"`{name}` takes a variable number of arguments"
        try:
            body = tuple(tokenize(match["body"]))
        except UnterminatedCommentError:
            body, fault = (), f"the definition of `{name}` holds a comment without an end"
        if any(one.text in ("#", "##") or one.kind is TokenKind.DIRECTIVE for one in body):
            fault = fault or f"`{name}` pastes or quotes its arguments"
        body = tuple(replace(one, span=token.span) for one in body)
        self._events.append(_Event(directive.span.start, name, Macro(name, formals, body, fault, token.span)))

    def define_enumerators(self, partners: Mapping[int, int]) -> None:
        """Treat enumeration constants as macros for their values; ``partners`` are the brackets of the tokens."""
        added: list[_Event] = []
        for index, token in enumerate(self.tokens[:-2]):
            if token.text != "enum":
                continue
            brace = index + 1 if self.tokens[index + 1].text == "{" else index + 2
            if self.tokens[brace].text == "{":
                added += self._enumerators(brace + 1, partners[brace])
        self._events = sorted([*self._events, *added], key=lambda event: event.offset)

    def _enumerators(self, index: int, end: int) -> Iterator[_Event]:
        last: tuple[Token, ...] = (Token(TokenKind.NUMBER, "-1", self.tokens[index - 1].span),)
        behind = self.tokens[end].span.end
        for first, stop in split_commas(self.tokens, index, end):
            if first == stop:
                continue  # a comma before the brace
            name = self.tokens[first]
            parts = (name, *self.tokens[first + 2 : stop])
            opening, plus, one, closing = (
                Token(kind, text, name.span)
                for kind, text in (
                    (TokenKind.PUNCTUATOR, "("),
                    (TokenKind.PUNCTUATOR, "+"),
                    (TokenKind.NUMBER, "1"),
                    (TokenKind.PUNCTUATOR, ")"),
                )
            )
            if stop > first + 2 and self.tokens[first + 1].text == "=":
                body = (opening, *parts[1:], closing)
            elif last[0].text == "-1":
                body = (Token(TokenKind.NUMBER, "0", name.span),)
            else:
                body = (opening, *last, plus, one, closing)
            fault = f"`{name.text}` is defined under a condition" if self.within_conditional(name.span) else ""
            yield _Event(behind, name.text, Macro(name.text, None, body, fault, name.span))
            last = (name,)

    def macros_at(self, offset: int) -> dict[str, Macro]:
        """Return the macros that are defined at an offset of the text."""
        known: dict[str, Macro] = {}
        for event in self._events:
            if event.offset >= offset:
                break
            self._apply(event, known)
        return known

    @staticmethod
    def _apply(event: _Event, known: dict[str, Macro]) -> None:
        if event.macro is None:
            known.pop(event.name, None)
        elif event.name not in _NEVER_EXPANDED:
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
        events = [event for event in self._events if event.offset >= tokens[0].span.start]
        if not known and not events:
            return list(tokens)
        pending = [_Pending(token, frozenset()) for token in reversed(tokens)]
        result: list[_Pending] = []
        while pending:
            while events and events[0].offset < pending[-1].token.span.start:
                self._apply(events.pop(0), known)
            _step(pending, known, result)
            if len(result) + len(pending) > len(tokens) + _TOKEN_LIMIT:
                raise ExpansionError("MF0008", "macros expand to too much text", tokens[0].span)
        return [one.token for one in result]


@dataclass(slots=True)
class _Branch:
    """An open conditional: ``active`` is whether its current branch is read, ``decided`` whether that is certain."""

    opening: Directive
    active: bool
    decided: bool
    taken: bool
    later: bool = False

    def next(self, directive: Directive) -> None:
        self.later = True
        if not self.decided:
            self.active = True
        elif directive.word == "else":
            self.active, self.taken = not self.taken, True
        elif self.taken:
            self.active = False
        else:
            verdict = _verdict(directive)
            self.active = verdict is not False
            self.taken = verdict is True
            self.decided = verdict is not None


@dataclass(frozen=True, slots=True)
class _Place:
    """What the open conditionals say together: kept a level, for conditionals may be nested thousands deep.

    ``alternative``: inside a second or later branch of an undecided one; ``certain``: inside decided ones only.
    """

    active: bool
    alternative: bool
    certain: bool

    def inside(self, branch: _Branch) -> _Place:
        """Return the place in the current branch of a conditional that is opened here."""
        return _Place(
            self.active and branch.active,
            self.alternative or (branch.later and not branch.decided),
            self.certain and branch.decided,
        )


def _opened(directive: Directive) -> _Branch:
    verdict = _verdict(directive)
    if verdict is None:
        return _Branch(directive, active=True, decided=False, taken=False)
    return _Branch(directive, active=verdict, decided=True, taken=verdict)


def _verdict(directive: Directive) -> bool | None:
    """Decide the conditions that need no knowledge: constants, and that a C file is no C++."""
    condition = directive.rest.strip()
    match directive.word:
        case "if" | "elif" if re.fullmatch(r"[0-9]+", condition):
            return int(condition) != 0
        case "if" if condition in ("defined(__cplusplus)", "defined __cplusplus"):
            return False
        case "ifdef" if condition == "__cplusplus":
            return False
        case "ifndef" if condition == "__cplusplus":
            return True
        case _:
            return None


def _directive(token: Token) -> Directive:
    text = _COMMENT.sub(" ", _SPLICE.sub("", token.text))
    match = _HEAD.match(text)
    assert match is not None
    return Directive(match["word"], match["rest"].rstrip(), token.span)


@dataclass(frozen=True, slots=True)
class _Pending:
    token: Token
    hidden: frozenset[str]


def _step(pending: list[_Pending], known: dict[str, Macro], result: list[_Pending]) -> None:
    one = pending.pop()
    token = one.token
    macro = known.get(token.text) if token.kind is TokenKind.NAME and token.text not in one.hidden else None
    if macro is None:
        result.append(one)
        return
    if macro.formals is not None and not (pending and pending[-1].token.text == "("):
        result.append(one)
        return
    if macro.fault:
        result.append(_Pending(replace(token, fault=macro.fault), one.hidden))
        return
    if macro.formals is None:
        pending.extend(
            _Pending(replace(part, span=token.span), one.hidden | {macro.name}) for part in reversed(macro.body)
        )
        return
    arguments, use = _arguments(token, pending)
    if len(arguments) != len(macro.formals) and not (not macro.formals and arguments == [[]]):
        message = f"`{macro.name}` takes {len(macro.formals)} arguments, {len(arguments)} are given"
        raise ExpansionError("MF0009", message, use)
    bound = {formal: _expanded(argument, known) for formal, argument in zip(macro.formals, arguments, strict=False)}
    body: list[_Pending] = []
    for part in macro.body:
        if part.kind is TokenKind.NAME and part.text in bound:
            body.extend(_Pending(given.token, given.hidden | one.hidden | {macro.name}) for given in bound[part.text])
        else:
            body.append(_Pending(replace(part, span=use), one.hidden | {macro.name}))
    pending.extend(reversed(body))


def _arguments(name: Token, pending: list[_Pending]) -> tuple[list[list[_Pending]], Span]:
    """Take ``( ... )`` from what is pending; return the arguments and the span of the whole use."""
    pending.pop()
    arguments: list[list[_Pending]] = [[]]
    depth = 1
    while pending:
        one = pending.pop()
        text = one.token.text
        if text in ("(", "[", "{"):
            depth += 1
        elif text in (")", "]", "}"):
            depth -= 1
            if depth == 0:
                return arguments, hull(name.span, one.token.span)
        if text == "," and depth == 1:
            arguments.append([])
        else:
            arguments[-1].append(one)
    raise ExpansionError("MF0009", f"the arguments of `{name.text}` have no end", name.span)


def _expanded(argument: list[_Pending], known: dict[str, Macro]) -> list[_Pending]:
    """Expand an argument by itself, as C does before it is put into the macro's body."""
    pending = list(reversed(argument))
    result: list[_Pending] = []
    while pending:
        _step(pending, known, result)
        if len(result) + len(pending) > _TOKEN_LIMIT:
            raise ExpansionError("MF0008", "macros expand to too much text", argument[0].token.span)
    return result
