"""Local pointers into arrays, ``const float *row = x + i * m;``: what they lead to is written out.

A pointer that is initialised with a place in an array, and never changed, is that place: ``row[k]`` is read as
``x[i * m + k]``, ``*row`` as ``x[i * m]``, ``body->mass`` as ``p[i].mass``.  What the place depends on keeps its value
as long as the pointer lives; an offset that may not is kept in a scalar.  So is the offset of a pointer that walks
through one array, ``*p++``.  One of two places, ``c ? x : y``, is chosen where it is used, and so is one of a table of
pointers.  Other pointers stay, and are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from metafork.frontend.host.linear_indices import changed
from metafork.frontend.host.variables import Variable, declared
from metafork.frontend.nests.closed_steps import with_closed_steps
from metafork.frontend.nests.heads import same
from metafork.frontend.nests.places import (
    Choice,
    Fixed,
    Place,
    Pointer,
    Scope,
    Table,
    Walking,
    compared,
    element_of,
    place_of,
    written_out,
)
from metafork.frontend.nests.shape import fresh
from metafork.frontend.text import syntax
from metafork.frontend.text.free_names import free_names
from metafork.frontend.text.structures import TypeNames
from metafork.frontend.text.syntax_changes import with_expressions, with_statements
from metafork.ir.arithmetic.types import ScalarType

MOST_POINTERS = 16
"""Pointers in a table of which one is chosen by its number."""


def with_places(
    statement: syntax.Statement,
    visible: Scope,
    typedefs: TypeNames,
    parameters: tuple[syntax.Declarator, ...] = (),
) -> syntax.Statement:
    """Return a statement in which local pointers to places in arrays that are ``visible`` are written out.

    So are ``parameters`` of the function whose body it is, where they walk through what they are given.
    """
    walking = [one for one in parameters if (one.type.pointers or one.type.extents) and one.name in _changed(statement)]
    if not walking and not any(declarator.type.pointers for declarator in syntax.declarators_in(statement)):
        return statement
    own = {one.name for one in syntax.declarators_in(statement)}
    rewriting = _Rewriting(typedefs, free_names(statement) | visible.keys() | own)
    for parameter in walking:
        statement = rewriting.parameter(parameter, statement)
    return finished(rewriting.statement(statement, dict(visible)), rewriting.bases)


def finished(statement: syntax.Statement, bases: Sequence[syntax.Expression] = ()) -> syntax.Statement:
    """Return a statement in which pointers into ``bases`` are compared by offsets; assignments to a choice branch."""
    if bases:
        statement = with_expressions(statement, lambda one: compared(one, bases))
    if isinstance(statement, syntax.ExpressionStatement) and not statement.atomic:
        return _branched(statement, statement.expression)
    return with_statements(statement, lambda one: finished(one, bases))


class _Rewriting:
    def __init__(self, typedefs: TypeNames, taken: set[str]) -> None:
        self._typedefs = typedefs
        self._taken = taken
        self.bases: list[syntax.Expression] = []

    def statement(self, statement: syntax.Statement, scope: dict[str, Variable]) -> syntax.Statement:
        """Return a statement with its pointers written out; ``scope`` are the variables that are visible in front."""
        if isinstance(statement, syntax.ForStatement) and isinstance(statement.init, syntax.Declaration):
            scope = dict(scope)
            kept, (rest,) = self._declaration(statement.init, [replace(statement, init=None)], scope)
            assert isinstance(rest, syntax.ForStatement)
            init = replace(statement.init, declarators=kept) if kept else None
            return replace(rest, init=init, body=self.statement(rest.body, dict(scope)))
        if not isinstance(statement, syntax.Block):
            return with_statements(statement, lambda one: self.statement(one, dict(scope)))
        scope = dict(scope)
        found: list[syntax.Statement] = []
        rest_of = list(statement.items)
        while rest_of:
            item = rest_of.pop(0)
            if not isinstance(item, syntax.Declaration):
                found.append(self.statement(item, scope))
                continue
            kept, rest_of = self._declaration(item, rest_of, scope)
            if kept or not item.declarators:
                found.append(replace(item, declarators=kept))
        return replace(statement, items=tuple(found))

    def _declaration(
        self, item: syntax.Declaration, rest: list[syntax.Statement], scope: dict[str, Variable]
    ) -> tuple[tuple[syntax.Declarator, ...], list[syntax.Statement]]:
        """Return what is left of a declaration, and what follows it with its pointers written out."""
        kept: list[syntax.Declarator] = []
        left = list(item.declarators)
        while left:
            declarator = left.pop(0)
            follows = syntax.Block((replace(item, declarators=tuple(left)), *rest), item.span)
            pointer, scalars = self._pointer(declarator, scope, follows)
            if pointer is None:
                kept.append(declarator)
                scope[declarator.name] = declared(declarator, self._typedefs, 0)
                continue
            for one in scalars:
                kept.append(one)
                scope[one.name] = declared(one, self._typedefs, 0)
            first, *rest = (with_pointer(one, pointer) for one in follows.items)
            if isinstance(pointer, Walking):
                rest = self._closed(rest, pointer)
            elif isinstance(pointer, Fixed) and isinstance(pointer.place, Place):
                self.bases.append(pointer.place.base)
            assert isinstance(first, syntax.Declaration)
            left = list(first.declarators)
        return tuple(kept), rest

    def _closed(self, rest: list[syntax.Statement], pointer: Walking) -> list[syntax.Statement]:
        """Return what follows with the offset of a pointer in closed form in loops that count."""
        effects = [_with_effects(one) for one in rest]
        found = with_closed_steps(syntax.Block(tuple(effects), pointer.base.span), pointer.offset)
        assert isinstance(found, syntax.Block)
        return list(found.items)

    def parameter(self, declarator: syntax.Declarator, body: syntax.Statement) -> syntax.Statement:
        """Return the body of a function in which a pointer that it is given walks by an offset."""
        name, type_ = declarator.name, declarator.type
        assert isinstance(body, syntax.Block)
        plain = type_.pointers + len(type_.extents) == 1 and not type_.rows and not type_.function
        if not plain or _has_mention(body, name) or name in {one.name for one in syntax.declarators_in(body)}:
            return body
        given = _given_places(body, name)
        base = syntax.Name(name, declarator.name_span)
        itself = Variable(name, declarator.name_span, 0, pointed=ScalarType.INT)
        places = [] if given is None else [place_of(value, {name: itself}) for value in given]
        if given is None or any(one is None or not isinstance(one[0], Place) for one in places):
            return body
        kept = self._scalar(declarator, "at", syntax.Constant("0", declarator.span))
        walking = Walking(name, base, kept.name)
        self.bases.append(base)
        items = self._closed([with_pointer(one, walking) for one in body.items], walking)
        return replace(body, items=(syntax.Declaration((kept,), declarator.span), *items))

    # --- which pointers ---------------------------------------------------------------------------------------

    def _pointer(
        self, declarator: syntax.Declarator, scope: Scope, rest: syntax.Block
    ) -> tuple[Pointer | None, list[syntax.Declarator]]:
        """Return a pointer that can be written out, and scalars to be declared in its place."""
        type_ = declarator.type
        plain = type_.pointers == 1 and not (type_.rows or type_.function or type_.storage)
        if not plain or "volatile" in type_.qualifiers or _has_mention(rest, declarator.name):
            return None, []
        if type_.extents:
            return self._table(declarator, scope, rest), []
        declarator = self._without_casts(declarator)
        if declarator.name in _changed(rest) or declarator.value is None:
            return self._walking(declarator, scope, rest)
        place = self._led(declarator, declarator.value, scope, rest)
        match place:
            case None:
                return None, []
            case Place(offset=offset) if offset is not None and not _lasts(offset, rest):
                kept = self._scalar(declarator, "first", offset)
                return Fixed(declarator.name, replace(place, offset=syntax.Name(kept.name, declarator.span))), [kept]
            case Choice(condition=condition) if not _lasts(condition, rest):
                one, zero = (syntax.Constant(text, condition.span) for text in "10")
                kept = self._scalar(declarator, "is_first", syntax.Ternary(condition, one, zero, condition.span))
                return Fixed(declarator.name, replace(place, condition=syntax.Name(kept.name, condition.span))), [kept]
            case _:
                return Fixed(declarator.name, place), []

    def _without_casts(self, declarator: syntax.Declarator) -> syntax.Declarator:
        """Return a pointer whose first value is not converted to its own type: ``float *p = (float *)x;``."""
        own = element_of(declared(declarator, self._typedefs, 0))
        while isinstance(declarator.value, syntax.Conversion):
            cast = replace(declarator, type=declarator.value.type)
            if own is None or element_of(declared(cast, self._typedefs, 0)) != own:
                break
            declarator = replace(declarator, value=declarator.value.operand)
        return declarator

    def _scalar(self, declarator: syntax.Declarator, suffix: str, value: syntax.Expression | None) -> syntax.Declarator:
        """Return the declaration of a scalar for the offset of a pointer."""
        name = fresh(f"{declarator.name}_{suffix}", self._taken)
        self._taken.add(name)
        type_ = syntax.TypeName(("long",), frozenset(), frozenset(), (), 0, False, declarator.type.span)
        return replace(declarator, name=name, type=type_, value=value)

    def _led(
        self, declarator: syntax.Declarator, value: syntax.Expression, scope: Scope, rest: syntax.Block
    ) -> Place | Choice | None:
        """Return the place that a value is, where all but its outer offset or condition lasts as long as ``rest``."""
        found = place_of(value, scope)
        if found is None:
            return None
        place, array = found
        flat = replace(declarator, type=replace(declarator.type, extents=()))
        own = element_of(declared(flat, self._typedefs, 0))
        hidden = {one.name for one in syntax.declarators_in(rest)}
        names = syntax.names_in(place.pointer(declarator.span))
        if own is None or own != element_of(array) or ({declarator.name} | names) & hidden:
            return None
        inner = [one for one in _places(place) if one is not place]
        if any(one.offset is not None and not _lasts(one.offset, rest) for one in inner):
            return None
        if isinstance(place, Choice) and not all(_lasts(one, rest) for one in _conditions(place)[1:]):
            return None
        fits = all(
            _row_lasts(one.base, rest) and (one.offset is None or not _may_wrap(one.offset, scope))
            for one in _places(place)
        )
        return place if fits and not _bases_of(place) & _changed(rest) else None

    def _walking(
        self, declarator: syntax.Declarator, scope: Scope, rest: syntax.Block
    ) -> tuple[Pointer | None, list[syntax.Declarator]]:
        """Return a pointer that is given places in one array, and goes on from there."""
        name = declarator.name
        assigned = _given_places(rest, name)
        if assigned is None:
            return None, []
        given = [*([] if declarator.value is None else [declarator.value]), *assigned]
        bases: list[syntax.Expression] = []
        itself = replace(declared(declarator, self._typedefs, 0), element=None)
        for value in given:
            place = place_of(value, {**scope, name: itself})
            if place is None or not isinstance(place[0], Place):
                return None, []
            if not isinstance(place[0].base, syntax.Name) or place[0].base.name != name:
                if self._led(declarator, place[0].base, scope, rest) is None:
                    return None, []
                if place[0].offset is not None and _may_wrap(place[0].offset, scope):
                    return None, []
                bases.append(place[0].base)
        if not bases or not all(same(one, bases[0]) for one in bases):
            return None, []
        kept = self._scalar(declarator, "at", None)
        walking = Walking(name, bases[0], kept.name)
        if declarator.value is not None:
            first = place_of(declarator.value, scope)
            assert first is not None
            assert isinstance(first[0], Place)
            kept = replace(kept, value=first[0].offset or syntax.Constant("0", declarator.span))
        self.bases.append(bases[0])
        return walking, [kept]

    def _table(self, declarator: syntax.Declarator, scope: Scope, rest: syntax.Block) -> Table | None:
        """Return a table of pointers of which no one changes, and of which nothing but elements is asked."""
        name, braces = declarator.name, declarator.braces
        if braces is None or len(declarator.type.extents) != 1 or not 0 < len(braces.items) <= MOST_POINTERS:
            return None
        extent = declarator.type.extents[0]
        if not isinstance(extent, syntax.Constant) or extent.text != str(len(braces.items)):
            return None
        places: list[Place | Choice] = []
        for item in braces.items:
            if isinstance(item, syntax.Braces | syntax.Designated):
                return None
            place = self._led(declarator, item, scope, rest)
            if place is None or not all(one.offset is None or _lasts(one.offset, rest) for one in _places(place)):
                return None
            places.append(place)
        named = 0
        for part in syntax.expressions_in(rest):
            match part:
                case syntax.Subscript(base=syntax.Name(name=other), index=index) if other == name:
                    named -= 1
                    if not all(isinstance(one, OF_SCALARS) for one in syntax.walk(index)) or changed([index]):
                        return None
                case syntax.Assignment(target=syntax.Subscript(base=syntax.Name(name=other))) if other == name:
                    return None
                case syntax.Name(name=other) if other == name:
                    named += 1
                case _:
                    pass
        return None if named else Table(name, tuple(places))


def _given_places(rest: syntax.Statement, name: str) -> list[syntax.Expression] | None:
    """Return what is assigned to a pointer; ``None`` where it may change in another way than by steps."""
    found: list[syntax.Expression] = []
    for part in syntax.expressions_in(rest):
        match part:
            case syntax.Prefix(op="&", operand=syntax.Name(name=other)) if other == name:
                return None
            case syntax.Assignment(op=op, target=syntax.Name(name=other), value=value) if other == name:
                if op not in ("=", "+=", "-="):
                    return None
                found += [value] if op == "=" else []
            case _:
                pass
    return found


def with_pointer(statement: syntax.Statement, pointer: Pointer) -> syntax.Statement:
    """Return a statement in which a pointer is written out."""
    statement = with_expressions(statement, lambda one: written_out(one, pointer))
    return with_statements(statement, lambda one: with_pointer(one, pointer))


def _with_effects(statement: syntax.Statement) -> syntax.Statement:
    """Return a statement in which steps of an offset whose value nobody wants stand alone."""
    match statement:
        case syntax.ExpressionStatement(expression=expression):
            return replace(statement, expression=_effect(expression))
        case syntax.ForStatement(init=init, step=step):
            if init is not None and not isinstance(init, syntax.Declaration):
                init = _effect(init)
            statement = replace(statement, init=init, step=None if step is None else _effect(step))
        case _:
            pass
    return with_statements(statement, _with_effects)


def _effect(expression: syntax.Expression) -> syntax.Expression:
    """Return what an expression does whose value nobody wants: of ``x + p_at++``, ``p_at++``."""
    match expression:
        case syntax.Infix(op="+", right=syntax.Assignment() | syntax.Postfix() | syntax.Prefix(op="++" | "--") as step):
            return step
        case syntax.Comma(items=items):
            return replace(expression, items=tuple(map(_effect, items)))
        case _:
            return expression


def _branched(statement: syntax.ExpressionStatement, expression: syntax.Expression) -> syntax.Statement:
    """Return an expression statement; an assignment to one of two places is a branch."""
    then: syntax.Expression
    otherwise: syntax.Expression
    match expression:
        case syntax.Assignment(target=syntax.Ternary() as target):
            then, otherwise = (replace(expression, target=one) for one in (target.then, target.otherwise))
        case (
            syntax.Postfix(op="++" | "--", operand=syntax.Ternary() as target)
            | syntax.Prefix(op="++" | "--", operand=syntax.Ternary() as target)
        ):
            then, otherwise = (replace(expression, operand=one) for one in (target.then, target.otherwise))
        case _:
            return replace(statement, expression=expression)
    ways = _branched(statement, then), _branched(statement, otherwise)
    return syntax.IfStatement(target.condition, *ways, statement.span)


def _places(place: Place | Choice) -> Iterator[Place]:
    if isinstance(place, Place):
        yield place
        return
    yield from _places(place.then)
    if place.otherwise is not None:
        yield from _places(place.otherwise)


def _conditions(place: Place | Choice | None) -> list[syntax.Expression]:
    """Return the conditions by which a place is chosen, the outer one first."""
    if not isinstance(place, Choice):
        return []
    return [place.condition, *_conditions(place.then), *_conditions(place.otherwise)]


def _bases_of(place: Place | Choice) -> set[str]:
    """Return the names of the arrays, and what their rows depend on."""
    return {name for one in _places(place) for name in syntax.names_in(one.base)}


OF_SCALARS = (syntax.Name, syntax.Constant, syntax.Infix, syntax.Prefix, syntax.Conversion, syntax.Ternary)
"""Expressions whose values depend on those of variables alone."""


def _row_lasts(base: syntax.Expression, rest: syntax.Statement) -> bool:
    """Return whether an array, or a row of it, stays the same one."""
    while isinstance(base, syntax.Subscript):
        if not _lasts(base.index, rest):
            return False
        base = base.base
    return _lasts(base, rest)


def _lasts(expression: syntax.Expression, rest: syntax.Statement) -> bool:
    """Return whether an expression keeps its value: it is made of scalars that nothing changes, not of memory."""
    of_scalars = all(
        isinstance(one, OF_SCALARS) and not (isinstance(one, syntax.Prefix) and one.op in ("++", "--", "*", "&"))
        for one in syntax.walk(expression)
    )
    return of_scalars and syntax.names_in(expression).isdisjoint(_changed(rest))


def _changed(statement: syntax.Statement) -> set[str]:
    """Return the names that a statement may give another value."""
    return changed(part for one in syntax.walk_statements(statement) for part in syntax.direct_expressions(one))


def _may_wrap(offset: syntax.Expression, scope: Scope) -> bool:
    """Return whether an offset has a difference in a narrow unsigned type: pointers go back there, numbers wrap."""
    nodes = list(syntax.walk(offset))
    names = [scope.get(one.name) for one in nodes if isinstance(one, syntax.Name)]
    unsigned = any(one is not None and one.type is not None and not one.type.signed for one in names)
    return unsigned and any(isinstance(one, syntax.Infix | syntax.Prefix) and one.op == "-" for one in nodes)


def _has_mention(statement: syntax.Statement, name: str) -> bool:
    """Return whether a name stands in text that is not understood, or where the size of the pointer may be meant."""
    statements = syntax.walk_statements(statement)
    if any(isinstance(one, syntax.Opaque) and any(token.text == name for token in one.tokens) for one in statements):
        return True
    braced = {id(one.value) for one in syntax.declarators_in(statement) if one.braces is not None}
    for part in syntax.expressions_in(statement):
        if id(part) in braced:
            continue  # its values are among the expressions
        if isinstance(part, syntax.Unsupported) and any(token.text == name for token in part.tokens):
            return True
        if isinstance(part, syntax.Prefix) and part.op == "sizeof" and name in syntax.names_in(part.operand):
            return True
    return False
