"""Expressions and declarations of C, piece by piece: the one place that knows pycparser.

Statements are not the grammar's business: ``structure`` descends through them and asks for one piece at a time, so that
a piece that is not understood costs nothing else.
pycparser's parser is subclassed so that it reads our tokens (macros expanded, spans kept) and so that the extent of
every expression in tokens is recorded.  Its tree leaves this module as ``syntax``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from msgspec.structs import replace
from pycparser import c_ast

from metafork.frontend.text import syntax
from metafork.frontend.text.constants import integer_constant
from metafork.frontend.text.counted_braces import first_extent
from metafork.frontend.text.parsing.fed_parser import Extent, Parser, StoppedError
from metafork.frontend.text.tokens import Token, hull, perhaps_written
from metafork.ir.messages.source import Span

DEPTH_LIMIT = 130
"""Deepest expression that is accepted, in operators; what follows (proofs, printers) recurses over expressions."""

_SKIPPED = {"__restrict__", "__restrict", "__extension__", "__inline", "__inline__", "inline", "__volatile__"}


class GrammarError(Exception):
    """This is no C that the parser knows; ``span`` is where it stopped."""

    def __init__(self, message: str, span: Span) -> None:
        super().__init__(message)
        self.message = message
        self.span = span


class TooDeepError(Exception):
    """An expression that is nested too deeply."""


def _without_extensions(tokens: Sequence[Token]) -> list[Token]:
    """Leave out words and attributes of compilers that say nothing about a declaration's meaning."""
    kept: list[Token] = []
    depth = 0
    waiting = False  # for the parentheses of an attribute
    for token in tokens:
        if depth or (waiting and token.text == "("):
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            waiting = False
        elif token.text in ("__attribute__", "__attribute"):
            waiting = True
        elif token.text not in _SKIPPED:
            kept.append(token)
    return kept


def _sign(value: Any) -> bool | None:
    """Say of the value of an enumeration's constant that it is not negative, or negative; ``None``: not known."""
    match value:
        case None | c_ast.ID():  # one more than that before it, or as much as another one
            return True
        case c_ast.Constant(value=text):
            found = integer_constant(text)
            return True if text.startswith("'") or (found is not None and found[0] < 1 << 31) else None
        case c_ast.UnaryOp(op="-", expr=c_ast.Constant(value=text)):
            return bool(text == "0")
        case c_ast.BinaryOp(op="+" | "*" | "|" | "&" | "<<" | ">>", left=left, right=right):
            return True if _sign(left) and _sign(right) else None
        case _:
            return None


class Grammar:
    """Parses pieces of C.  ``types`` are the typedef names that are known."""

    def __init__(self) -> None:
        self._parser = Parser()
        self._given: Sequence[Token] = ()
        self._enumerations: dict[str, tuple[str, ...] | None] = {}

    def expression(self, tokens: Sequence[Token], types: frozenset[str]) -> syntax.Expression:
        """Return the expression that the tokens are; raises ``GrammarError`` and ``TooDeepError``."""
        result: syntax.Expression = self._run(tokens, types, self._expression)
        return result

    def simple_statement(
        self, tokens: Sequence[Token], types: frozenset[str], supposed: frozenset[str] = frozenset()
    ) -> syntax.Declaration | syntax.ExpressionStatement:
        """Return a declaration or an expression statement, semicolon included; raises as ``expression`` does.

        ``supposed`` are words that are read as names of types without being known as such.
        """
        result: syntax.Declaration | syntax.ExpressionStatement = self._run(
            tokens, types, self._simple_statement, supposed
        )
        return result

    def parameter(self, tokens: Sequence[Token], types: frozenset[str]) -> syntax.Declarator | None:
        """Return the declaration of a function's parameter, ``None`` for a nameless one; raises as above."""
        result: syntax.Declarator | None = self._run(tokens, types, self._parameter)
        return result

    def _run(
        self, tokens: Sequence[Token], types: frozenset[str], parse: Any, supposed: frozenset[str] = frozenset()
    ) -> Any:
        self._given = _without_extensions(tokens)
        if not self._given:
            raise GrammarError("nothing stands here", tokens[0].span if tokens else Span(1, 1, 1, 1, 0, 0))
        try:
            self._parser.load(self._given, types, supposed)
            result = parse()
            if not self._parser.at_end():
                self._leftover(self._parser._mark())
        except StoppedError as stop:
            raise self._located(stop) from None
        except RecursionError:
            raise TooDeepError from None
        return result

    def _leftover(self, index: int) -> NoReturn:
        raise StoppedError("left over", index)

    def _located(self, stop: StoppedError) -> GrammarError:
        index = min(stop.index, len(self._given))
        if 0 < index < len(self._given) and self._given[index].span.line > self._given[index - 1].span.end_line:
            end = self._given[index - 1].span
            place = Span(end.end_line, end.end_column, end.end_line, end.end_column, end.end, end.end)
            return GrammarError(f"something is missing after `{self._given[index - 1].text}`, a `;` perhaps", place)
        if index >= len(self._given):
            end = self._given[-1].span
            return GrammarError(f"something is missing after `{self._given[-1].text}`", end)
        text = self._given[index].text
        return GrammarError(f"`{text}` cannot stand here", self._given[index].span)

    # --- what is parsed ---------------------------------------------------------------------------------------

    def _expression(self) -> syntax.Expression:
        return self._convert(self._parser._parse_expression())

    def _simple_statement(self) -> syntax.Declaration | syntax.ExpressionStatement:
        span = hull(self._given[0].span, self._given[-1].span)
        if not self._parser.starts_declaration():
            expression = self._parser._parse_expression()
            self._parser._expect("SEMI")
            return syntax.ExpressionStatement(self._convert(expression), span)
        declarations = self._parser._parse_declaration()
        extents = self._parser.declarators
        named = [one for one in declarations if getattr(one, "name", None)]
        if named and len(named) != len(extents):
            raise GrammarError("this declaration is not understood", span)
        if not named:
            alone = [
                self._structure(one.type) for one in declarations if isinstance(one.type, c_ast.Struct | c_ast.Union)
            ]
            for one in declarations:
                if isinstance(one.type, c_ast.Enum):
                    self._enumeration(one.type)
            first = alone[0] if alone else None
            type_ = syntax.TypeName(("struct",), frozenset(), frozenset(), (), 0, False, span, first)
            return syntax.Declaration((), span, type_ if alone else None)
        return syntax.Declaration(
            tuple(self._declarator(one, extent) for one, extent in zip(named, extents, strict=True)), span
        )

    def _parameter(self) -> syntax.Declarator | None:
        node = self._parser._parse_parameter_declaration()
        if not getattr(node, "name", None):
            return None
        return self._declarator(node, Extent(0, len(self._given)))

    # --- conversion -------------------------------------------------------------------------------------------

    def _span(self, extent: Extent) -> Span:
        covered = self._given[extent.begin : max(extent.end, extent.begin + 1)]
        return hull(*(token.span for token in covered))

    def _declarator(self, node: Any, extent: Extent) -> syntax.Declarator:
        value = getattr(node, "init", None)
        converted: syntax.Expression | None = None
        braces: syntax.Braces | None = None
        if value is not None:
            if isinstance(value, c_ast.InitList):
                noted = self._parser.extents[id(value)]
                converted = replace(
                    self._unsupported("a braced initialiser", extent),
                    tokens=tuple(self._given[noted.begin : noted.end]),
                )
                braces = self._braces(value)
                if braces is not None:  # what is assigned there is seen; `.name =` assigns to no variable
                    converted = replace(converted, written=frozenset())
            else:
                converted = self._convert(value)
        name_at = self._name_index(node, extent)
        type_ = self._type(node, extent)
        if braces is not None and type_.extents[:1] == (None,):
            inner = type_.extents[1:]
            type_ = replace(type_, extents=(first_extent(braces, inner, self._span(extent)), *inner))
        return syntax.Declarator(node.name, type_, converted, self._given[name_at].span, self._span(extent), braces)

    def _braces(self, values: Any) -> syntax.Braces | None:
        """Return a braced initialiser, ``None`` where it has something else than values and designators."""
        items: list[syntax.Expression | syntax.Braces | syntax.Designated] = []
        for one in values.exprs or ():
            named = isinstance(one, c_ast.NamedInitializer)
            value = one.expr if named else one
            item = self._braces(value) if isinstance(value, c_ast.InitList) else self._convert(value)
            if item is None:
                return None
            indices = tuple(self._designator(index, item.span) for index in one.name) if named else ()
            items.append(syntax.Designated(indices, item, item.span) if named else item)
        return syntax.Braces(tuple(items), self._span(self._parser.extents[id(values)]))

    def _designator(self, index: Any, span: Span) -> syntax.Expression | syntax.MemberDesignator:
        if isinstance(index, c_ast.ArrayDesignator):
            return self._convert(index.expr)
        return syntax.MemberDesignator(index.name, span)

    def _name_index(self, node: Any, extent: Extent) -> int:
        for index in range(extent.begin, extent.end):
            if self._given[index].text == node.name:
                return index
        return extent.begin

    def _type(self, node: Any, extent: Extent) -> syntax.TypeName:
        extents: list[syntax.Expression | None] = []
        rows: list[syntax.Expression] = []
        pointers, function = 0, False
        inner = node.type
        qualifiers = set(getattr(node, "quals", None) or ())
        storage = set(getattr(node, "storage", None) or ())
        while True:
            if isinstance(inner, c_ast.ArrayDecl):
                storage |= {*(inner.dim_quals or ())} & {"static"}
                if pointers:
                    pointers += 1  # a pointer to an array
                    rows += [] if inner.dim is None else [self._convert(inner.dim)]
                else:
                    extents.append(None if inner.dim is None else self._convert(inner.dim))
            elif isinstance(inner, c_ast.PtrDecl):
                pointers += 1
            elif isinstance(inner, c_ast.FuncDecl):
                function = True
                break
            elif isinstance(inner, c_ast.TypeDecl):
                qualifiers |= set(inner.quals or ())
            else:
                break
            inner = inner.type
        words = tuple(inner.names) if isinstance(inner, c_ast.IdentifierType) else ("struct",)
        if isinstance(inner, c_ast.Enum):
            words = self._enumeration(inner) or words
        if isinstance(node, c_ast.Typedef):
            storage.add("typedef")
        return syntax.TypeName(
            words,
            frozenset(qualifiers),
            frozenset(storage),
            tuple(extents),
            pointers,
            function,
            self._span(extent),
            self._structure(inner) if isinstance(inner, c_ast.Struct | c_ast.Union) else None,
            tuple(rows),
        )

    def _enumeration(self, node: Any) -> tuple[str, ...] | None:
        """Return the integer type that an enumeration is to the compilers of hosts, ``None`` where it is not known.

        It is unsigned, unless one of its constants is negative.
        """
        if node.values is not None:
            signs = [_sign(one.value) for one in node.values.enumerators]
            words = ("int",) if False in signs else None if None in signs else ("unsigned", "int")
            if node.name:
                self._enumerations[node.name] = words if self._enumerations.get(node.name, words) == words else None
            return words
        return self._enumerations.get(node.name)

    def _structure(self, node: Any) -> syntax.StructureName:
        members = None if node.decls is None else tuple(self._member(one) for one in node.decls)
        return syntax.StructureName(node.name or "", members, isinstance(node, c_ast.Union))

    def _member(self, node: Any) -> syntax.MemberName:
        name = getattr(node, "name", None) or ""
        inner = getattr(node, "type", None)
        quals = {*(getattr(node, "quals", None) or ()), *(getattr(inner, "quals", None) or ())}
        extents: list[syntax.Expression | None] = []
        while isinstance(inner, c_ast.ArrayDecl):
            extents.append(None if inner.dim is None else self._convert(inner.dim))
            inner = inner.type
        if isinstance(inner, c_ast.TypeDecl) and isinstance(inner.type, c_ast.IdentifierType | c_ast.Struct) and name:
            plain = isinstance(inner.type, c_ast.IdentifierType)
            words = tuple(inner.type.names) if plain else ()
            if getattr(node, "bitsize", None) is not None:
                return syntax.MemberName(name, words, "a field of bits")
            what = "`const` or `volatile`" if quals | set(inner.quals or ()) else ""
            structure = None if plain else self._structure(inner.type)
            return syntax.MemberName(name, words, what, tuple(extents), structure)
        what = "a pointer" if isinstance(inner, c_ast.PtrDecl) else "a union or enumeration"
        if what == "a pointer" and not extents:
            return syntax.MemberName(name, (), what, pointed=self._type(node, Extent(0, 1)))
        return syntax.MemberName(name, (), f"an array of {what}s" if extents else what)

    def _unsupported(self, what: str, extent: Extent) -> syntax.Unsupported:
        covered = self._given[extent.begin : extent.end]
        return syntax.Unsupported(what, self._span(extent), frozenset(perhaps_written(covered)), tuple(covered))

    def _convert(self, node: Any) -> syntax.Expression:
        expression, _, depth = self._converted(node)
        if depth > DEPTH_LIMIT:
            raise TooDeepError
        return expression

    def _converted(self, node: Any) -> tuple[syntax.Expression, Extent, int]:
        """Return an expression, its extent with parentheses around it, and its depth."""
        expression, inner, depth = self._bare(node)
        noted = self._parser.extents.get(id(node))
        outer = inner if noted is None else Extent(min(noted.begin, inner.begin), max(noted.end, inner.end))
        return expression, outer, depth

    def _bare(self, node: Any) -> tuple[syntax.Expression, Extent, int]:
        """Return an expression, its extent without parentheses around it, and its depth.

        Only leaves and parentheses were noted while parsing; the extents of operators follow from their operands.
        """
        if isinstance(node, c_ast.ID):
            at = Extent(node.coord.line, node.coord.line + 1)
            return syntax.Name(node.name, self._span(at), bool(self._given[node.coord.line].fault)), at, 1
        if isinstance(node, c_ast.Constant):
            if node.type == "string":
                at = self._parser.extents[id(node)]
                return syntax.String(self._span(at)), at, 1
            at = Extent(node.coord.line, node.coord.line + 1)
            return syntax.Constant(node.value, self._span(at)), at, 1
        if isinstance(node, c_ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, c_ast.BinaryOp):
            left, first, left_depth = self._converted(node.left)
            right, last, right_depth = self._converted(node.right)
            at = Extent(first.begin, last.end)
            return syntax.Infix(node.op, left, right, self._span(at)), at, 1 + max(left_depth, right_depth)
        if isinstance(node, c_ast.TernaryOp):
            condition, first, depth = self._converted(node.cond)
            then, _, then_depth = self._converted(node.iftrue)
            otherwise, last, otherwise_depth = self._converted(node.iffalse)
            at = Extent(first.begin, last.end)
            ternary = syntax.Ternary(condition, then, otherwise, self._span(at))
            return ternary, at, 1 + max(depth, then_depth, otherwise_depth)
        if isinstance(node, c_ast.Assignment):
            target, first, depth = self._converted(node.lvalue)
            value, last, value_depth = self._converted(node.rvalue)
            at = Extent(first.begin, last.end)
            return syntax.Assignment(node.op, target, value, self._span(at)), at, 1 + max(depth, value_depth)
        if isinstance(node, c_ast.ExprList):
            parts = [self._converted(one) for one in node.exprs]
            at = Extent(parts[0][1].begin, parts[-1][1].end)
            items = tuple(part[0] for part in parts)
            return syntax.Comma(items, self._span(at)), at, 1 + max(part[2] for part in parts)
        if isinstance(node, c_ast.ArrayRef):
            base, first, depth = self._converted(node.name)
            index, last, index_depth = self._converted(node.subscript)
            at = Extent(first.begin, last.end + 1)
            return syntax.Subscript(base, index, self._span(at)), at, 1 + max(depth, index_depth)
        if isinstance(node, c_ast.FuncCall):
            return self._call(node)
        if isinstance(node, c_ast.StructRef):
            base, first, depth = self._converted(node.name)
            at = Extent(first.begin, node.field.coord.line + 1)
            return syntax.Member(base, node.field.name, node.type == "->", self._span(at)), at, 1 + depth
        if isinstance(node, c_ast.Cast):
            operand, last, depth = self._converted(node.expr)
            at = Extent(node.coord.line, last.end)
            type_ = self._type(node.to_type, self._parser.extents[id(node.to_type)])
            return syntax.Conversion(type_, operand, self._span(at)), at, 1 + depth
        at = self._parser.extents.get(id(node), Extent(0, len(self._given)))
        if isinstance(node, c_ast.CompoundLiteral):
            at = Extent(node.coord.line, self._parser.extents[id(node.init)].end)
            braces = self._braces(node.init)
            if braces is None:
                return self._unsupported(syntax.COMPOUND_LITERAL, at), at, 1
            type_ = self._type(node.type, self._parser.extents[id(node.type)])
            return syntax.Literal(type_, braces, self._span(at)), at, 1
        return self._unsupported("an expression of this form", at), at, 1

    def _unary(self, node: Any) -> tuple[syntax.Expression, Extent, int]:
        if node.op == "sizeof" and isinstance(node.expr, c_ast.Typename):
            inside = self._parser.extents[id(node.expr)]
            at = Extent(inside.begin - 2, inside.end + 1)
            return syntax.SizeOfType(self._type(node.expr, inside), self._span(at)), at, 1
        if node.op == "_Alignof":
            inside = self._parser.extents[id(node.expr)]
            at = Extent(inside.begin - 2, inside.end + 1)
            return self._unsupported("_Alignof", at), at, 1
        operand, inside, depth = self._converted(node.expr)
        if node.op in ("p++", "p--"):
            at = Extent(inside.begin, inside.end + 1)
            return syntax.Postfix(node.op[1:], operand, self._span(at)), at, 1 + depth
        at = Extent(inside.begin - 1, inside.end)
        return syntax.Prefix(node.op, operand, self._span(at)), at, 1 + depth

    def _call(self, node: Any) -> tuple[syntax.Expression, Extent, int]:
        callee, first, depth = self._converted(node.name)
        given = node.args.exprs if node.args is not None else []
        if any(isinstance(one, c_ast.Typename) for one in given):
            at = self._parser.extents.get(id(node), Extent(0, len(self._given)))
            return self._unsupported("a call with a type as argument", at), at, 1
        parts = [self._converted(one) for one in given]
        at = Extent(first.begin, (parts[-1][1].end if parts else first.end + 1) + 1)
        arguments = tuple(part[0] for part in parts)
        deepest = max((part[2] for part in parts), default=0)
        return syntax.Invocation(callee, arguments, self._span(at)), at, 1 + max(depth, deepest)
