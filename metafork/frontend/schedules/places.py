"""Places in memory: elements of arrays, members of structures and structures as a whole, with names resolved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from msgspec.structs import replace

from metafork.frontend.host.variables import OF_CONDITIONAL_TYPES, spelled_out
from metafork.frontend.schedules.moved_arrays import refuse_moved
from metafork.frontend.schedules.structure_parts import (
    Whole,
    located,
    members_at,
    path_of,
    whole_of,
)
from metafork.frontend.schedules.symbols import (
    ArraySymbol,
    PointedSymbol,
    Symbol,
    UnusableSymbol,
)
from metafork.frontend.schedules.values.complex_numbers import ComplexNumbers
from metafork.frontend.schedules.values.conversions import taken_for
from metafork.frontend.schedules.values.initialisers import MisfitError
from metafork.frontend.schedules.values.structure_items import array_of, placed_members, shape_of
from metafork.frontend.schedules.values.unions import Unions
from metafork.frontend.text import syntax
from metafork.frontend.text.clauses.keywords import similar
from metafork.frontend.text.constants import integer_constant
from metafork.frontend.text.other_languages.indices import of_cast, of_dimensions
from metafork.frontend.text.other_languages.words import unknown_name
from metafork.frontend.text.reporter import RefusedError, Reporter
from metafork.frontend.text.structures import COMPLEX, StructureType, TypeNames, structure_of
from metafork.frontend.text.vocabulary import CONSTANTS, scalar_type
from metafork.ir import program as ir
from metafork.ir.arithmetic.evaluation import NoValueError, integer_value
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Span


def is_zero(index: syntax.Expression) -> bool:
    """Say whether an expression is the number 0."""
    return isinstance(index, syntax.Constant) and integer_constant(index.text) == (0, ScalarType.INT)


def count(number: int, word: str) -> str:
    """Return a number with a word, in the plural where it has to be."""
    plural = "indices" if word == "index" else word + "s"
    return f"{number} {word if number == 1 else plural}"


class PlaceBuilder(ABC):
    """Builds accesses of memory; any other expression is up to ``build`` and ``condition``, which a subclass has.

    ``resolve`` maps a name to what it stands for (``None``: not declared); ``visible`` lists the names in scope for
    suggestions.  A name that is not declared, or cannot be used, is reported at its first use (``undeclared``,
    ``unusable``).  ``inline`` gives what a call of one of the ``functions`` of the file gives, ``None`` for any other
    call, and ``assignment`` what an expression assigns to a scalar, or ``None`` where it assigns to anything else; what
    is to be done before the value is there goes to ``ahead``, with ``fresh`` names.  ``given`` says whether a pointer
    is not null, where that is known.
    """

    def __init__(
        self,
        reporter: Reporter,
        typedefs: TypeNames,
        resolve: Callable[[str], Symbol | None],
        visible: Callable[[], list[str]],
    ) -> None:
        self._reporter = reporter
        self._typedefs = typedefs
        self._resolve = resolve
        self._visible = visible
        self.unions = Unions(reporter, typedefs, resolve, self.build)
        self.complex = ComplexNumbers(self, reporter, typedefs, resolve)
        self.undeclared: set[str] = set()
        self.unusable: list[UnusableSymbol] = []
        self.inline: Callable[[syntax.Invocation, str], ir.Expr | None] = lambda _call, _name: None
        self.inline_structure: Callable[[syntax.Invocation, str], Whole | None] = lambda _call, _name: None
        self.assignment: Callable[[syntax.Expression], ir.Assign | None] = lambda _expression: None
        self.fresh: Callable[[str], str] = lambda name: name
        self.given: Callable[[str], ir.Var | ir.IntConst | None] = lambda _name: None
        self.literal: Callable[[syntax.Literal], ArraySymbol] = self._no_literal
        self.functions: list[str] = []
        self.ahead: list[ir.Stmt] = []

    @abstractmethod
    def build(self, expression: syntax.Expression) -> ir.Expr:
        """Return an expression; raises ``RefusedError``."""

    @abstractmethod
    def condition(self, expression: syntax.Expression) -> ir.Expr:
        """Return an expression of which only matters whether it is 0; raises ``RefusedError``."""

    def _no_literal(self, literal: syntax.Literal) -> ArraySymbol:
        raise self._reporter.refuse("MF0218", literal.span, f"{syntax.COMPOUND_LITERAL} is not supported here")

    def named_type(self, type_: syntax.TypeName) -> ScalarType:
        """Return the scalar type that a type name stands for; raises ``RefusedError`` for any other type."""
        if type_.pointers or type_.function:
            raise self._reporter.refuse("MF0201", type_.span, "a pointer type stands in a schedule")
        structure = self.structure_type(type_)
        if structure is not None or type_.words == ("struct",):
            raise self._reporter.refuse("MF0205", type_.span, "a structure type stands in a schedule")
        found = scalar_type(type_.words, self._typedefs)
        if found is None or type_.extents:
            words = " ".join(type_.words)
            if words in self._typedefs.conditional and not type_.extents:
                reason, way_out = OF_CONDITIONAL_TYPES
                message = f"the type `{words}` is declared under a condition"
                raise self._reporter.refuse("MF0216", type_.span, message, reason=reason, way_out=way_out)
            from metafork.frontend.text.other_languages.types import foreign_type  # most files have none

            if not type_.extents and words not in self._typedefs and (advice := foreign_type(type_.words, "")):
                raise self._reporter.advise("MF0216", type_.span, advice)
            raise self._reporter.refuse("MF0216", type_.span, f"the type `{words}` is not supported in a schedule")
        return found

    def spelled_out(self, type_: syntax.TypeName) -> syntax.TypeName:
        """Return a type in which the name of an array type is written out."""
        return spelled_out(type_, self._typedefs)

    def require_integers(self, op: str, operands: tuple[ir.Expr, ...], span: Span) -> None:
        """Refuse floating operands of an operator that C defines on integers only."""
        for operand in operands:
            if operand.type.floating:
                message = f"`{op}` has an operand of type `{operand.type.spelling}`"
                raise self._reporter.refuse("MF0306", span, message)

    def symbol(self, name: str, span: Span) -> Symbol | None:
        """Return what a name stands for; ``None`` for a constant of a header; raises ``RefusedError`` for neither."""
        found = self._resolve(name)
        if found is None and name not in CONSTANTS:
            if name in self.undeclared:
                raise RefusedError  # once is enough
            self.undeclared.add(name)
            if (advice := unknown_name(name, self._reporter.text(0, span.start))) is not None:
                raise self._reporter.advise("MF0301", span, advice)
            meant = similar(name, self._visible())
            hint = f"; did you mean `{meant}`?" if meant else ""
            way_out = None
            if name.isupper() and not meant:
                way_out = "declare it; if it is a macro of a header, run the preprocessor first: gcc -E -x c FILE."
            raise self._reporter.refuse("MF0301", span, f"`{name}` is not declared{hint}", way_out=way_out)
        if isinstance(found, UnusableSymbol):
            if found in self.unusable:
                raise RefusedError
            self.unusable.append(found)
            raise self._reporter.refuse(
                found.code,
                found.at or span,
                found.message,
                reason=found.reason,
                way_out=found.way_out,
                related=((span, "the schedule uses it here") if found.at else (found.span, "declared here"),),
            )
        return found

    def structure_type(self, type_: syntax.TypeName) -> StructureType | None:
        """Return the structure that a type name stands for, ``None`` for any other type.

        Raises ``RefusedError`` for one that is no row of scalars of one type.
        """
        found = structure_of(type_, self._typedefs)
        if found is not None and found.fault:
            raise self._reporter.refuse(
                "MF0205", type_.span, f"`{found.name or 'struct'}` is a structure: {found.fault}"
            )
        return found

    def element(self, expression: syntax.Subscript | syntax.Prefix) -> ir.Element | ir.Var:
        """Return an element of an array (or the scalar that a parameter points to); raises ``RefusedError``."""
        indices: list[syntax.Expression] = []
        base: syntax.Expression = expression
        while isinstance(base, syntax.Subscript | syntax.Prefix):
            match base:
                case syntax.Subscript(base=inner, index=index):
                    indices.append(index)
                case syntax.Prefix(op="*", operand=syntax.Infix(op="+", left=inner, right=index)):
                    indices.append(index)
                case syntax.Prefix(op="*", operand=inner):
                    indices.append(syntax.Constant("0", base.span))
                case _:
                    break
            base = inner
        if isinstance(base, syntax.Literal) and base.type.extents and not base.type.pointers:
            of = self.literal(base)
            if len(indices) != len(of.extents):
                raise self._reporter.refuse("MF0302", expression.span, "this is no whole element of the literal")
            return ir.Element(
                of.array.name, of.indices(self._all(*reversed(indices))), of.array.element, expression.span
            )
        if not isinstance(base, syntax.Name):
            if isinstance(base, syntax.Member):
                found = self.member(expression)
                assert isinstance(found, ir.Element | ir.Var)
                return found
            refuse_moved(self._reporter, self._resolve, base)
            if isinstance(base, syntax.Conversion) and base.type.pointers == 1:
                written = self._reporter.written(base.operand.span)
                raise self._reporter.advise("MF0203", expression.span, of_cast(" ".join(base.type.words), written))
            raise self._reporter.refuse("MF0203", expression.span, "what is indexed here is no array")
        symbol = self.symbol(base.name, base.span)
        if isinstance(symbol, ArraySymbol) and symbol.members:
            raise self._reporter.refuse(
                "MF0205", expression.span, f"`{base.name}` has structures, not scalars, for elements"
            )
        if isinstance(symbol, PointedSymbol) and len(indices) == 1 and is_zero(indices[0]):
            return ir.Var(symbol.scalar.name, symbol.scalar.type, expression.span)
        if not isinstance(symbol, ArraySymbol):
            if isinstance(expression, syntax.Prefix):
                raise self._reporter.refuse("MF0203", expression.span, f"`{base.name}` is no array and no pointer")
            related = ((symbol.span, "declared here"),) if symbol is not None else ()
            raise self._reporter.refuse(
                "MF0310", expression.span, f"`{base.name}` is a scalar and has no elements", related=related
            )
        array = symbol.array
        if len(indices) != len(symbol.extents):
            texts = [
                [self._reporter.written(part.span) for part in parts]
                for parts in (one.items if isinstance(one, syntax.Comma) else (one,) for one in reversed(indices))
            ]
            declared = f"{'const ' * symbol.const}{array.element.spelling} {base.name}"
            before = self._reporter.text(0, expression.span.start)
            advice = of_dimensions(declared, len(symbol.extents), texts, before)
            raise self._reporter.advise("MF0302", expression.span, advice, ((array.span, "declared here"),))
        built = self._all(*reversed(indices))
        for index, value in zip(reversed(indices), built, strict=True):
            if value.type.floating:
                message = f"this index of `{base.name}` has type `{value.type.spelling}`"
                raise self._reporter.refuse("MF0303", index.span, message)
        return ir.Element(array.name, symbol.indices(built), array.element, expression.span)

    def part(self, expression: syntax.Expression) -> ArraySymbol | None:
        """Return the array, or the part of one, that an expression gives to a function; ``None`` for anything else.

        ``a``, ``a[i]`` with fewer indices than extents, ``a + i`` and ``&a[i]`` are parts.  Raises ``RefusedError``.
        """
        match expression:
            case syntax.Literal(type=syntax.TypeName(pointers=0, extents=(_, *_))):
                return self.literal(expression)
            case syntax.Name(name=name, span=span, uncertain=False):
                if name in CONSTANTS and self._resolve(name) is None:
                    return None
                symbol = self.symbol(name, span)
                return symbol if isinstance(symbol, ArraySymbol) else None
            case syntax.Prefix(op="&", operand=syntax.Name(name=name) as whole) if self._resolve(name) is not None:
                of = self.part(whole)
                return replace(of, single=False) if of is not None and of.single else None
            case syntax.Subscript(base=base, index=index):
                of = self.part(base)
                return None if of is None or of.single or len(of.extents) < 2 else of.part(self._counted(index))
            case syntax.Infix(op="+", left=base, right=index):
                of = self.part(base)
                return None if of is None else of.moved(self._counted(index))
            case syntax.Prefix(op="&", operand=syntax.Subscript(base=base, index=index)):
                of = self.part(base)
                return None if of is None else of.moved(self._counted(index))
            case _:
                return None

    def _counted(self, index: syntax.Expression) -> ir.Expr:
        built = self.build(index)
        if built.type.floating:
            raise self._reporter.refuse("MF0303", index.span, f"this index has type `{built.type.spelling}`")
        return built

    def _all(self, *expressions: syntax.Expression) -> tuple[ir.Expr, ...]:
        built: list[ir.Expr] = []
        for expression in expressions:
            try:
                built.append(self.build(expression))
            except RefusedError:
                continue
        if len(built) != len(expressions):
            raise RefusedError
        return tuple(built)

    def member(self, expression: syntax.Expression) -> ir.Expr:
        """Return a member of a structure, or an element of one that is an array; raises ``RefusedError``."""
        part = self.unions.member(expression)
        if part is not None:
            return taken_for(*part)
        found = self.members(expression)
        if found is None:
            owner = path_of(expression)
            if owner is not None and isinstance(owner[0], syntax.Name):
                self.symbol(owner[0].name, owner[0].span)  # reports one that is not declared
            raise self._reporter.refuse("MF0205", expression.span, "this is no member of a structure of the schedule")
        if found.names == ("",):
            return found.values[0]
        path = self._path_text(expression)
        what = "a structure itself"
        if found.names[0].startswith("["):
            what = f"an array of {count(found.names[-1].partition('.')[0].count('['), 'extent')}"
        raise self._reporter.refuse("MF0205", expression.span, f"the member `{path}` is {what}")

    def members(self, expression: syntax.Expression) -> Whole | None:
        """Return the members that an expression like ``a[i].c`` or ``a[i].c.x`` leads to, ``None`` for another one."""
        found = path_of(expression)
        if found is None:
            return None
        owner, steps = found
        structure = self.structure(owner)
        whole = None if structure is not None else self.whole(owner)
        if structure is None and whole is None:
            if isinstance(owner, syntax.Invocation | syntax.Unsupported):
                self.no_structure(owner)
            return None
        names = (
            whole.names if structure is None and whole is not None else () if structure is None else structure.members
        )
        here = members_at(names, steps)
        if not here:
            path = self._path_text(expression)
            if members_at(names, [step for step in steps if isinstance(step, str)]) or "[" in path:
                had = next((one for one in names if one.startswith(str(steps[0]))), "").count("[")
                raise self._reporter.refuse(
                    "MF0205", expression.span, f"the member `{path}` is an array of {count(had, 'extent')}"
                    if had else f"the member `{path}` has no elements"
                )  # fmt: skip
            meant = similar(path, list(names))
            hint = f"; did you mean `{meant}`?" if meant else ""
            raise self._reporter.refuse("MF0301", expression.span, f"the structure has no member `{path}`{hint}")
        if structure is not None:
            return located(structure, steps, self._counted, expression.span)
        assert whole is not None
        part = whole.part(steps, self._counted)
        if part is None:
            message = "an element is taken of a structure that is a value"
            way_out = "declare a variable of its type, and take that variable's."
            raise self._reporter.refuse("MF0205", expression.span, message, way_out=way_out)
        if not part.names:
            way_out = "take an element that the array has."
            raise self._reporter.refuse("MF0205", expression.span, "the array has no such element", way_out=way_out)
        return part

    def _path_text(self, expression: syntax.Expression) -> str:
        found = path_of(expression)
        assert found is not None
        return ".".join(step for step in found[1] if isinstance(step, str))

    def whole(self, expression: syntax.Expression) -> Whole | None:
        """Return the structure that an expression has for its value, ``None`` for a scalar and what is not known."""
        if (number := self.complex.value(expression)) is not None:
            return number
        match expression:
            case syntax.Ternary(condition=condition, then=then, otherwise=otherwise, span=span):
                return self._chosen(condition, then, otherwise, span)
            case syntax.Literal():
                return self._literal(expression)
            case syntax.Invocation(callee=syntax.Name(name=name)) if self.is_function(name):
                return self.inline_structure(expression, name)
            case syntax.Member() | syntax.Subscript() if path_of(expression) is not None:
                found = self.members(expression)
                return None if found is None or found.names[0][:1] in ("", "[") else found
            case _:
                structure = self.structure(expression)
                return None if structure is None else whole_of(structure, expression.span)

    def whole_as(self, type_: Whole | StructureType, expression: syntax.Expression) -> Whole | None:
        """Return the structure that an expression has for its value where one of a type is wanted."""
        if isinstance(type_, StructureType):
            element = type_.element if type_.members == COMPLEX else None
        else:
            element = type_.values[0].type if type_.names == COMPLEX else None
        return self.whole(expression) if element is None else self.complex.converted(expression, element)

    def _chosen(
        self, condition: syntax.Expression, then: syntax.Expression, otherwise: syntax.Expression, span: Span
    ) -> Whole | None:
        """Return one of two structures; each is only read where it is the one."""
        before = len(self.ahead)
        test = self.condition(condition)
        middle = len(self.ahead)
        first = self.whole(then)
        early = tuple(self.ahead[middle:])
        del self.ahead[middle:]
        second = None if first is None else self.whole(otherwise)
        late = tuple(self.ahead[middle:])
        del self.ahead[middle:]
        if first is None or second is None or not first.alike(second):
            del self.ahead[before:]
            return None
        results = tuple(ir.Var(self.fresh("chosen"), value.type, span) for value in first.values)
        self.ahead += [ir.Declare(one.name, one.type, None, span) for one in results]
        branches = [
            (*ahead, *(ir.Assign(to, "", of, span) for to, of in zip(results, one.values, strict=True)))
            for ahead, one in ((early, first), (late, second))
        ]
        self.ahead.append(ir.If(test, branches[0], branches[1], span))
        return Whole(first.names, results)

    def _literal(self, expression: syntax.Literal) -> Whole | None:
        """Return the values of a compound literal, evaluated before anything is done with it."""
        structure = (
            None if expression.type.pointers or expression.type.extents else self.structure_type(expression.type)
        )
        if structure is None:
            return None
        assert structure.element is not None
        types = [slot.type for slot in structure.slots] or [structure.element] * len(structure.members)
        values: dict[int, ir.Expr] = {}
        for place, item in self.structure_items(expression.braces, structure.members, (), expression.span):
            values[place] = item if isinstance(item, ir.Expr) else self.build(item)
        results: list[ir.Expr] = []
        for place, type_ in enumerate(types):
            value = values.get(place, ir.IntConst(0, span=expression.span))
            kept = ir.Var(self.fresh("literal"), type_, expression.span)
            self.ahead.append(ir.Declare(kept.name, type_, value, expression.span))
            results.append(kept)
        return Whole(structure.members, tuple(results))

    def structure_items(
        self, braces: syntax.Braces, members: tuple[str, ...], extents: tuple[int, ...], span: Span
    ) -> list[tuple[int, syntax.Expression | ir.Expr]]:
        """Return the values in braces by the numbers of members; raises ``RefusedError``."""
        shape = shape_of(members)
        for extent in reversed(extents):
            shape = array_of(shape, extent)
        try:
            return list(placed_members(braces, shape, self._index_of, self._structure_item))
        except MisfitError as error:
            raise self._reporter.refuse(
                "MF0221",
                error.span,
                "these braces do not fit the members of the structure",
                reason="an initialiser has at most as many values as there are members, and names that they have.",
                way_out="write a pair of braces for each structure and each array in it.",
            ) from None

    def _index_of(self, index: syntax.Expression) -> int:
        try:
            return integer_value(self.build(index), {})
        except NoValueError:
            raise MisfitError(index.span) from None

    def _structure_item(self, item: syntax.Expression) -> Whole | None:
        """Return the structure that an item of braces is, ``None`` where it is a scalar."""
        match item:
            case syntax.Name(name=name):
                return self.whole(item) if isinstance(self._resolve(name), ArraySymbol) else None
            case syntax.Ternary() | syntax.Infix() | syntax.Constant() | syntax.Conversion():
                return self.whole(item) if isinstance(item, syntax.Ternary) and self._is_structure(item.then) else None
            case _:
                return self.whole(item) if self._is_structure(item) else None

    def _is_structure(self, item: syntax.Expression) -> bool:
        """Say whether an expression is a structure, without a trace of asking."""
        before = len(self.ahead)
        found = isinstance(item, syntax.Literal | syntax.Member | syntax.Subscript | syntax.Prefix | syntax.Name)
        if isinstance(item, syntax.Prefix) and item.op != "*":
            found = False
        if isinstance(item, syntax.Subscript) and path_of(item) is None:
            root: syntax.Expression = item
            while isinstance(root, syntax.Subscript):
                root = root.base
            symbol = self._resolve(root.name) if isinstance(root, syntax.Name) else None
            found = isinstance(symbol, ArraySymbol) and bool(symbol.members)
        if isinstance(item, syntax.Name):
            found = isinstance(self._resolve(item.name), ArraySymbol)
        if isinstance(item, syntax.Prefix) and found:
            found = (
                isinstance(item.operand, syntax.Name)
                and isinstance(symbol := self._resolve(item.operand.name), ArraySymbol)
                and bool(symbol.members)
            )
        result = found and self.whole(item) is not None
        del self.ahead[before:]
        return result

    def no_structure(self, expression: syntax.Expression) -> None:
        """Report what an expression is that stands for a structure, and cannot."""
        self.build(expression)  # a function that returns a structure, and what else is no value

    def structure(self, expression: syntax.Expression) -> ArraySymbol | None:
        """Return the one structure that an expression is, ``None`` for anything else; raises ``RefusedError``."""
        match expression:
            case syntax.Prefix(op="*", operand=syntax.Infix(op="+", left=base, right=index)):
                return self.structure(syntax.Subscript(base, index, expression.span))
            case syntax.Prefix(op="*", operand=base):
                return self.structure(syntax.Subscript(base, syntax.Constant("0", base.span), expression.span))
            case syntax.Name(name=name, uncertain=False) if self._resolve(name) is not None:
                symbol = self.symbol(name, expression.span)
                return symbol if isinstance(symbol, ArraySymbol) and symbol.whole else None
            case syntax.Subscript():
                found = self.part(expression)
                return found if found is not None and found.whole else None
            case _:
                return None

    def is_function(self, name: str) -> bool:
        """Say whether a name may be that of a function of the file: no variable has it."""
        found = self._resolve(name)
        return found is None or (isinstance(found, UnusableSymbol) and found.code == "MF0206")
