"""Structures that a function is given: to a schedule, members that stay what they are, are parameters.

``void f(Grid g, ...)``, in which ``g.nx`` stands, is read as if it had a parameter ``int g_nx`` as well; a member that
is a pointer leads to elements, like a parameter that is one (``a.data[i * a.cols + j]``).  Whoever prints the host's
text keeps ``g`` and declares the others where the function begins.

That needs members that nothing in the function changes, as far as its tokens show: it assigns to none of them and takes
no address.  Behind a pointer (``g->nx``) others may change them: there the function stores to elements and variables
only, and calls nothing that could.  What is left, that a number which it stores to is such a member, is asked at run
time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from metafork.frontend.host.known_names import C_WORDS, KnownNames
from metafork.frontend.members.returning import Returning, calls_nothing
from metafork.frontend.text import syntax
from metafork.frontend.text.structures import TypeNames, single_members, structure_of
from metafork.frontend.text.tokens import WRITING, BracketError, Token, TokenKind, hull, match_brackets

Paths = Mapping[tuple[str, ...], str]
"""The names of members that are parameters, by the names that lead there: ``{("g", "nx"): "g_nx"}``."""

_IN_FRONT = frozenset({"(", ",", "=", "return"})
_BEHIND = frozenset({")", ",", ";"})


def member_types(
    declarator: syntax.Declarator,
    types: TypeNames,
    head: Sequence[Token],
    body: Sequence[Token],
    known: KnownNames,
    returning: Mapping[str, Returning],
    others: Collection[str],
) -> dict[str, syntax.TypeName]:
    """Return the types of the members that a function uses of a parameter, in order, by their paths (``size.x``).

    None for what is no structure and no pointer to one, and where members may change.  ``head`` are the function's
    other parameters, ``returning`` functions that do nothing but return a value, ``others`` variables of the file that
    are neither numbers nor arrays of them.
    """
    type_ = declarator.type
    structure = structure_of(type_, types)
    if structure is None or type_.pointers > 1 or type_.extents or type_.function or "volatile" in type_.qualifiers:
        return {}
    members = dict(single_members(structure, types))
    head, body = (_without_parentheses(tokens, {declarator.name}) for tokens in (head, body))
    used: set[str] = set()
    if any(token.text in ("asm", "__asm", "__asm__") for token in body):
        return {}
    try:
        unknown = _in_unknown_calls(body, known)
    except BracketError:
        return {}  # reported where the body is parsed
    moved = set() if _names_of_structures(head, types) else set(_moved(body, declarator.name, members))
    if type_.pointers and not (
        _stores_to_numbers(head, body, types, others, moved) and calls_nothing(body, known, returning)
    ):
        return {}
    for first, behind in _uses(head, declarator.name):
        used.add(_path(head, first, behind))
    for first, behind in _uses(body, declarator.name):
        stays = _is_asked(body, first) if type_.pointers and behind == first + 1 else _stays(body, first, behind)
        stays |= behind in moved
        if (
            first in unknown
            or not stays
            or (behind > first + 1 and (body[first + 1].text == "->") != (type_.pointers == 1))
        ):
            return {}
        used.add(_path(body, first, behind))
    return {path: type_ for path, type_ in members.items() if path in used}


def moved_members(declarator: syntax.Declarator, types: TypeNames, body: Sequence[Token]) -> set[str]:
    """Return the pointers among the members of a parameter that a function assigns to, by their paths."""
    structure = structure_of(declarator.type, types)
    members = {} if structure is None else dict(single_members(structure, types))
    body = _without_parentheses(body, {declarator.name})
    return set(_moved(body, declarator.name, members).values())


def _moved(tokens: Sequence[Token], name: str, members: Mapping[str, syntax.TypeName]) -> dict[int, str]:
    """Return the pointers among a structure's members that are assigned to, by the places of the ``=``."""
    uses = ((behind, _path(tokens, first, behind)) for first, behind in _uses(tokens, name))
    return {
        behind: path
        for behind, path in uses
        if path in members
        and members[path].pointers == 1
        and [one.text for one in tokens[behind : behind + 1]] == ["="]
    }


def named_members(tokens: Sequence[Token], names: Paths) -> list[Token]:
    """Return tokens in which members are single names."""
    owners = {path[0] for path in names}
    tokens = _without_parentheses(tokens, owners) if owners else tokens
    result: list[Token] = []
    at = 0
    while at < len(tokens):
        behind = _member_end(tokens, at) if tokens[at].text in owners and not _is_member(tokens, at) else at + 1
        path = tuple(token.text for token in tokens[at:behind:2])
        if path in names:
            span = hull(tokens[at].span, tokens[behind - 1].span)
            result.append(replace(tokens[at], text=names[path], span=span))
        else:
            result += tokens[at:behind]
        at = behind
    return result


def _without_parentheses(tokens: Sequence[Token], names: Collection[str]) -> list[Token]:
    """Return tokens without the parentheses that macros put around their arguments: ``(g)->nx``; also ``(*g).nx``."""
    result: list[Token] = []
    for token in tokens:
        stars = [one.text for one in result[-4:]]
        called = len(result) > 4 and _is_called(result[-5])
        if token.text == "." and stars[:2] + stars[3:] == ["(", "*", ")"] and stars[2] in names and not called:
            result[-4:] = [result[-2], replace(token, text="->")]
            continue
        if token.text in (".", "->"):
            name = len(result) - 1
            while name > 0 and result[name].text == ")":
                name -= 1
            around = len(result) - 1 - name
            opened = [one.text for one in result[max(name - around, 0) : name]] == ["("] * around
            called = name > around and _is_called(result[name - around - 1])
            if around and opened and not called and result[name].text in names:
                result[name - around :] = [result[name]]
        result.append(token)
    return result


def _is_called(before: Token) -> bool:
    return before.text == "]" or (before.kind is TokenKind.NAME and before.text not in C_WORDS)


def _uses(tokens: Sequence[Token], name: str) -> Iterator[tuple[int, int]]:
    """Yield where a variable stands, each with the members that follow, up to the token behind."""
    for at, token in enumerate(tokens):
        if token.kind is TokenKind.NAME and token.text == name and not _is_member(tokens, at):
            yield at, _member_end(tokens, at)


def _path(tokens: Sequence[Token], first: int, behind: int) -> str:
    return "".join(token.text for token in tokens[first + 2 : behind])


def _is_member(tokens: Sequence[Token], at: int) -> bool:
    return at > 0 and tokens[at - 1].text in (".", "->")


def _member_end(tokens: Sequence[Token], at: int) -> int:
    behind = at + 1
    joints: tuple[str, ...] = (".", "->")
    while behind + 1 < len(tokens) and tokens[behind].text in joints and tokens[behind + 1].kind is TokenKind.NAME:
        behind += 2
        joints = (".",)
    return behind


def _stays(tokens: Sequence[Token], first: int, behind: int) -> bool:
    """Say whether a use leaves a structure as it is: a member's value, or a copy of the whole."""

    def text(at: int) -> str:
        return tokens[at].text if 0 <= at < len(tokens) else ""

    whole = behind == first + 1
    if whole and not (text(first - 1) in _IN_FRONT and text(behind) in _BEHIND):
        return False
    called = text(first - 1) == "(" and first > 1 and tokens[first - 2].kind is TokenKind.NAME
    while text(first - 1) == "(" and text(behind) == ")" and not called:
        first, behind = first - 1, behind + 1
        called = text(first - 1) == "(" and first > 1 and tokens[first - 2].kind is TokenKind.NAME
        if whole and text(behind) in (".", "["):
            return False
    # Behind a parenthesis, which may be a cast, `&` may take an address.
    address = text(first - 1) == "&" and (text(first - 2) == ")" or not _ends_operand(tokens[first - 2]))
    return not (address or text(first - 1) in ("++", "--") or text(behind) in WRITING)


def _is_asked(tokens: Sequence[Token], at: int) -> bool:
    """Say whether it is only asked whether a pointer leads anywhere."""
    before, after = (tokens[place].text if 0 <= place < len(tokens) else "" for place in (at - 1, at + 1))
    return before == "!" or not {before, after}.isdisjoint(("==", "!=", "&&", "||"))


def asks_for_null(tokens: Sequence[Token], name: str) -> bool:
    """Say whether some condition asks whether a pointer is null: ``if (p)``, ``p != NULL``, ``!p``, ``p ? 1 : 0``."""
    texts = ["", "", *(token.text for token in tokens), "", ""]
    for at, text in enumerate(texts):
        if text != name:
            continue
        (*_, second, before), (after, other, *_) = texts[at - 2 : at], texts[at + 1 : at + 3]
        compared = (before in ("==", "!=") and second in ("0", "NULL", ")")) or (
            after in ("==", "!=") and other in ("0", "NULL", "(")
        )
        alone = before == "(" and after == ")" and second in ("if", "while")
        if compared or alone or before == "!" or after == "?" or not {before, after}.isdisjoint(("&&", "||")):
            return True
    return False


def _stores_to_numbers(
    head: Sequence[Token], tokens: Sequence[Token], types: TypeNames, others: Collection[str], moved: Collection[int]
) -> bool:
    """Say whether assignments are to variables and elements that are numbers, not to what pointers lead to.

    Those at the places ``moved`` are looked at elsewhere.
    """
    structures = _names_of_structures([*head, *tokens], types) | {*others}
    led_to = {
        path.rpartition(".")[2]
        for structure in types.structures.values()
        for path, type_ in single_members(structure, types)
        if type_.pointers == 1 and structure_of(type_, types) is None
    }
    partners = match_brackets(tokens)
    opened = {last: first for first, last in partners.items()}
    for at, token in enumerate(tokens):
        if token.text not in WRITING or at in moved:
            continue
        if at > 0 and _ends_operand(tokens[at - 1]):
            last = at - 1
        else:  # `++` in front of what it changes
            last = at
            while last + 2 < len(tokens) and (last == at or tokens[last + 1].text in (".", "->", "[")):
                last = partners[last + 1] if tokens[last + 1].text == "[" else last + (1 if last == at else 2)
        first = last
        while tokens[first].text == "]":
            first = opened[first] - 1
        element, name = first < last, tokens[first]
        if name.kind is not TokenKind.NAME:
            return False
        inside = first > 0 and tokens[first - 1].text in (".", "->")
        if (not element or name.text not in led_to) if inside else name.text in structures:
            return False
        if not element and _is_led_to(tokens, first):
            return False
    return True


def _names_of_structures(tokens: Sequence[Token], types: TypeNames) -> set[str]:
    """Return the names that seem to be declared with a type of structures."""
    found: set[str] = set()
    for at, token in enumerate(tokens):
        before = at - 1
        while before > 0 and tokens[before].text in ("*", "const", "restrict"):
            before -= 1
        tagged = before > 0 and tokens[before - 1].text in ("struct", "union")
        if token.kind is TokenKind.NAME and before >= 0 and (tagged or tokens[before].text in types.structures):
            found.add(token.text)
    return found


def _is_led_to(tokens: Sequence[Token], at: int) -> bool:
    """Say whether a name that is assigned to has stars that belong to no declaration."""
    first = at
    while first > 0 and tokens[first - 1].text in ("*", "const", "restrict"):
        first -= 1
    typed = first > 0 and tokens[first - 1].kind is TokenKind.NAME and tokens[first - 1].text not in ("else", "do")
    return first < at and not typed


def _ends_operand(token: Token) -> bool:
    operand = token.kind in (TokenKind.NAME, TokenKind.NUMBER) and token.text not in ("return", "sizeof", "case")
    return operand or token.text in (")", "]")


def _in_unknown_calls(tokens: Sequence[Token], known: KnownNames) -> set[int]:
    """Return the places between the parentheses of what may be a macro; raises ``BracketError``."""
    found: set[int] = set()
    partners = match_brackets(tokens)
    for at, (token, after) in enumerate(pairwise(tokens)):
        unknown = token.kind is TokenKind.NAME and not known.knows(token.text) and not _is_member(tokens, at)
        if unknown and after.text == "(":
            found.update(range(at, partners[at + 1]))
    return found
