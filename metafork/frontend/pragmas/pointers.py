"""Pointers that schedules use as arrays: one element, or as many as a pragma says, or as their accesses do.

``*p`` and ``p[0]`` alone make the parameter ``float *p`` an array of one element.  Any other pointer (``float *p``,
``float p[]``) is an array where a pragma in front of its function, or within, gives its extent, a promise of whoever
calls the function::

    #pragma metafork extents(p[n * m], q[n])

Of a pointer to rows, ``float (*p)[m]``, it gives those too: ``extents(p[n][m])``.  ``extents(p[?])`` says that nobody
knows how many elements there are.  Of one row in a table of pointers, ``extents(rows[1][n])`` says it.

A pointer that is no parameter may lead elsewhere at every schedule, and is an array of its own there.  A pragma in
front of the schedule says its extent, by variables as they are where the schedule stands.  So is a parameter whose
extent follows from accesses, but not in terms of parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from metafork.frontend.host.host import HostFunction
from metafork.frontend.host.variables import Site, Variable, columns_of, key_of
from metafork.frontend.members.structure_values import Paths, named_members
from metafork.frontend.pragmas.given_memory import given_memory
from metafork.frontend.text import syntax
from metafork.frontend.text.clauses.keywords import CLAUSES, is_schedule_keyword
from metafork.frontend.text.definitions import split_commas
from metafork.frontend.text.parsing.c_grammar import Grammar, GrammarError, TooDeepError
from metafork.frontend.text.preprocessing.branches import Directive
from metafork.frontend.text.reporter import Reporter
from metafork.frontend.text.tokens import BracketError, LineMap, Token, TokenKind, end_before, match_brackets, tokenize
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Span
from metafork.ir.names import fresh
from metafork.ir.program import ENDLESS

NOT_KNOWN = "?"
"""What stands for an extent that nobody knows."""


class Promise(Struct, frozen=True):
    """What a pragma says of a pointer: how many elements it leads to, or how many ``rows`` of these extents."""

    name: str
    extent: syntax.Expression
    rows: tuple[syntax.Expression, ...]
    span: Span


def promised_extents(
    directives: Sequence[Directive],
    tokens: Sequence[Token],
    whole: Span,
    variables: Mapping[str, Variable],
    grammar: Grammar,
    expand: Callable[[Sequence[Token]], list[Token]],
    reporter: Reporter,
    members: Paths,
) -> tuple[dict[str, syntax.Expression], list[Promise]]:
    """Return what the pragmas of a function, in front of it and within, promise; reports MF0321.

    These are extents of its parameters, which are its ``variables``, and what is said of others.  ``expand`` expands
    the macros in tokens; ``members`` are those of structures that are parameters.
    """
    last = end_before(tokens, whole.start)
    found: dict[str, syntax.Expression] = {}
    others: list[Promise] = []
    for directive in directives:
        words = directive.rest.replace("(", " ").split()[:2]
        if directive.word == "pragma" and last <= directive.span.start < whole.end and words == ["metafork", "extents"]:
            try:
                for one in _read(directive, grammar, expand, members):
                    if one.name in variables and not (variables[one.name].row and one.rows):
                        found[one.name] = _checked(one, variables[one.name])
                    else:
                        others.append(one)
            except (ValueError, GrammarError, TooDeepError, BracketError) as reason:
                message = str(reason) if isinstance(reason, ValueError) else "this is no list of extents"
                reporter.error("MF0321", directive.span, message)
    return found, others


def at_schedule(
    host: HostFunction,
    site: Site,
    promises: Sequence[Promise],
    single: Collection[str] | None,
    taken: Collection[str],
    reporter: Reporter,
) -> Site:
    """Return a schedule to which pointers are arrays that have no extents for all of the function.

    ``promises`` are those of pragmas; the extents of others follow from accesses, but for ``single`` elements, unless
    this is ``None``; reports MF0321.  A pointer may be asked whether it is null, by names that are not ``taken``.
    """
    visible = dict(site.visible)
    names = {*taken, *visible}
    rows = {row.name: row.text for row in site.led}
    for name, one in site.visible.items():
        if one.pointed is None or one.fault != "MF0201" or not _rows_stay(host, site, one):
            continue
        here = [each for each in promises if each.span.start < site.statement.span.start]
        said = [each for each in here if each.name == name] or of_row(rows.get(name, ""), here)
        if said:
            extent = None
            try:
                extent = _checked(said[-1], one)
            except ValueError as reason:
                reporter.error("MF0321", said[-1].span, str(reason))
        else:
            extent = None if single is None else one_element(one.span) if name in single else endless(one.span)
        if extent is not None:
            given = Variable(fresh(f"has_{name}", names), one.span, site.order, ScalarType.INT)
            visible[name] = replace(one, since=site.order, scope=visible, is_parameter=False, given=given)
            visible[given.name] = given
            give_extent(visible[name], extent)
            if not said:
                visible[name].followed, visible[name].memory = True, given_memory(host, site, one)
    return replace(site, visible=visible)


def without_unused(site: Site, before: Site, arrays: Collection[str]) -> Site:
    """Return a schedule to which pointers are what they were ``before``, unless they are among the arrays it uses."""
    left = {name for name, one in site.visible.items() if one.followed and name not in arrays}
    return replace(site, visible=site.visible | {name: before.visible[name] for name in left & before.visible.keys()})


def of_row(row: str, promises: Sequence[Promise]) -> list[Promise]:
    """Return what promises, ``extents(rows[1][n])``, say of one row of a table, as promises of its elements."""
    return [
        Promise(one.name, one.rows[0], one.rows[1:], one.span)
        for one in promises
        if isinstance(one.extent, syntax.Constant) and row == f"{one.name}[{one.extent.text}]" and one.rows
    ]


def _rows_stay(host: HostFunction, site: Site, pointer: Variable) -> bool:
    """Say whether the extents of a pointer's rows are at a schedule what they were where it was declared."""
    sizes = {name: pointer.scope.get(name) for extent in pointer.rows for name in syntax.names_in(extent)}
    return all(
        one is None or (site.visible.get(name) is one and host.stable(one, pointer.since, site) is None)
        for name, one in sizes.items()
    )


def said_in_promises(directives: Sequence[Directive]) -> list[Token]:
    """Return the tokens of all pragmas that promise extents."""
    texts = [one.rest for one in directives if one.word == "pragma" and one.rest.split()[:1] == ["metafork"]]
    return [token for text in texts if "extents" in text for token in tokenize(text, LineMap(text))]


def _checked(promise: Promise, pointer: Variable) -> syntax.Expression:
    """Return the extent of a pointer; raises ``ValueError`` where it leads to something else than a pragma says."""
    name, rows = promise.name, pointer.rows
    if pointer.pointed is None:
        raise ValueError(f"`{name}` does not point to elements of a scalar type")
    if [key_of(one, pointer) for one in promise.rows] != [key_of(one, pointer) for one in rows]:
        raise ValueError(f"`{name}` needs {1 + len(rows)} extents, the last {len(rows)} as in its declaration")
    return promise.extent


def _read(
    directive: Directive, grammar: Grammar, expand: Callable[[Sequence[Token]], list[Token]], members: Paths
) -> list[Promise]:
    text = directive.rest.split("extents", 1)[1]
    tokens = [replace(token, span=directive.span) for token in tokenize(text, LineMap(text))]
    tokens = named_members(tokens, members)
    partners = match_brackets(tokens)
    if not tokens or tokens[0].text != "(" or partners[0] != len(tokens) - 1:
        raise ValueError("`extents` is followed by a list in parentheses")
    found: list[Promise] = []
    for first, behind in split_commas(tokens, 1, len(tokens) - 1):
        piece = tokens[first:behind]
        groups = _brackets(partners, first + 1, behind)
        if len(piece) < 4 or piece[0].kind is not TokenKind.NAME or not groups:
            raise ValueError("`extents` lists names with an extent each: `extents(p[n * m], q[n])`")
        unknown = [token.text for token in tokens[groups[0][0] + 1 : groups[0][1]]] == [NOT_KNOWN]
        texts = [tokens[start + 1 : end] for start, end in (groups[1:] if unknown else groups)]
        inner = [grammar.expression(expand(text), frozenset()) for text in texts]
        outer = endless(directive.span) if unknown else inner.pop(0)
        found.append(Promise(piece[0].text, outer, tuple(inner), directive.span))
    return found


def _brackets(partners: Mapping[int, int], first: int, behind: int) -> list[tuple[int, int]]:
    """Return the pairs of brackets that follow each other from a token to another, none where others stand between."""
    found: list[tuple[int, int]] = []
    while first < behind:
        end = partners.get(first, first)
        if end <= first + 1:
            return []
        found.append((first, end))
        first = end + 1
    return found


def pointers_used(body: Sequence[Token], variables: Mapping[str, Variable]) -> tuple[set[str], set[str]]:
    """Return the pointers of which the schedules of a function use ``*p`` and ``p[0]`` alone, and others they use."""
    used: set[str] = set()
    otherwise: set[str] = set()
    for first, behind in _schedules(body):
        clause = 0  # where a `meta_reduction` ends that only names results
        for index in range(first, behind):
            if body[index].text == "meta_reduction" and index >= clause:
                clause = next((at for at in range(index, behind) if body[at].text == ")"), index)
            if index < clause:
                continue
            name = body[index].text
            if name not in variables or variables[name].pointed is None or body[index].kind is not TokenKind.NAME:
                continue
            texts = [token.text for token in body[index + 1 : index + 4]]
            followed = texts[:1] in (["["], ["++"], ["--"], ["("])
            if texts == ["[", "0", "]"] or (body[index - 1].text == "*" and not followed):
                used.add(name)
            else:
                otherwise.add(name)
    return used - otherwise, otherwise


def _schedules(body: Sequence[Token]) -> list[tuple[int, int]]:
    """Return the ranges of the schedules from left to right, none in another, up to the end where one has no braces."""
    try:
        partners = match_brackets(body)
    except BracketError:
        return []  # reported where the body is parsed
    found: list[tuple[int, int]] = []
    for index in range(len(body)):
        if is_schedule_keyword(body, index) and (not found or found[-1][1] <= index):
            here = index + 1
            while here < len(body) and body[here].text != "{":
                here = partners[here] + 1 if body[here].text == "(" else here + 1
            braces = here < len(body) and body[index + 1].text in ("{", *CLAUSES)
            found.append((index, partners[here] if braces else len(body)))
    return found


def give_extent(variable: Variable, extent: syntax.Expression) -> None:
    """Make a pointer an array with a first extent."""
    variable.fault, variable.message = "", ""
    variable.element, variable.extents = variable.pointed, (extent, *variable.rows)
    if variable.structure is not None:
        variable.extents += (columns_of(variable.structure, variable.span),)


def one_element(span: Span) -> syntax.Expression:
    """Return the extent of an array of one element."""
    return syntax.Constant("1", span)


def endless(span: Span) -> syntax.Expression:
    """Return the extent of an array of which none is known."""
    return syntax.Constant(f"{ENDLESS.value}L", span)
