"""What a function is declared as: its parameters as schedules and the generated header see them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from metafork.frontend.host.file_scope import FileScope
from metafork.frontend.host.variables import Variable, advise, declared
from metafork.frontend.members.member_parameters import member_parameters
from metafork.frontend.members.returning import Returning
from metafork.frontend.members.structure_values import Paths, asks_for_null, named_members
from metafork.frontend.pragmas.pointers import said_in_promises
from metafork.frontend.schedules.expressions import ExpressionBuilder
from metafork.frontend.schedules.symbols import Origin, ScalarSymbol, Symbol
from metafork.frontend.text import syntax
from metafork.frontend.text.constants import integer_constant
from metafork.frontend.text.definitions import FunctionText, declared_name, split_commas
from metafork.frontend.text.parsing.c_grammar import Grammar, GrammarError, TooDeepError
from metafork.frontend.text.preprocessing.macros import ExpansionError
from metafork.frontend.text.preprocessing.preprocessor import Preprocessed
from metafork.frontend.text.reporter import RefusedError, Reporter, SilentReporter
from metafork.frontend.text.structures import COMPLEX
from metafork.frontend.text.tokens import Token, hull
from metafork.frontend.text.vocabulary import HEADER_TYPES, scalar_type
from metafork.ir import program as ir
from metafork.ir.arithmetic.evaluation import NoValueError, integer_value
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Source
from metafork.ir.names import fresh
from metafork.ir.rewriting import substitute
from metafork.ir.rewriting import variables as variables_in
from metafork.ir.translation_unit import Function, FunctionParameter


def callers(
    tokens: Sequence[Token], functions: Sequence[FunctionText], holding: Sequence[FunctionText]
) -> list[FunctionText]:
    """Return the functions without schedules whose bodies name one with schedules, or another such function."""
    names = {tokens[one.name].text for one in holding}
    others = [one for one in functions if one not in holding]
    words = [{token.text for token in tokens[one.open_brace : one.close_brace]} for one in others]
    found: list[FunctionText] = []
    count = -1
    while count < len(found):
        count = len(found)
        found = [one for one, named in zip(others, words, strict=True) if named & names]
        names |= {tokens[one.name].text for one in found}
    return found


class Signatures(Struct, frozen=True):
    """Reads the declarations of one file's functions; ``returning`` are those that return an expression.

    ``words`` are the texts of all tokens of the file.
    """

    source: Source
    grammar: Grammar
    reporter: Reporter
    preprocessed: Preprocessed
    scope: FileScope
    returning: Mapping[str, Returning]
    words: frozenset[str]

    def function(self, text: FunctionText) -> Function:
        """Return a function without schedules, as a static one where its declaration is not certain."""
        quiet = replace(self, reporter=SilentReporter())
        tokens = self.preprocessed.tokens
        span = hull(tokens[text.first].span, tokens[text.close_brace].span)
        body = hull(tokens[text.open_brace].span, tokens[text.close_brace].span)
        function = Function(tokens[text.name].text, "", (), span, body, static=True)
        if self.preprocessed.within_conditional(span) is None:
            with contextlib.suppress(RefusedError):
                parameters, _, _ = quiet.parameters(text, self.scope.variables, ())
                returns, static = quiet.returns(text), self.is_static(text)
                function = replace(function, returns=returns, parameters=parameters, static=static)
        return function

    def returns(self, text: FunctionText) -> str:
        """Return the type that a function returns, as C declares it."""
        head = self._expand(self.preprocessed.tokens[text.first : text.name])
        return self._text([token for token in head if token.text not in ("static", "inline")])

    def is_static(self, text: FunctionText) -> bool:
        """Return whether a function is the file's own, as its definition or another declaration says."""
        tokens = self.preprocessed.tokens
        name = tokens[text.name].text
        return name in self.scope.static or any(one.text == "static" for one in tokens[text.first : text.name])

    def parameters(
        self, text: FunctionText, visible: Mapping[str, Variable], body: Sequence[Token]
    ) -> tuple[tuple[FunctionParameter, ...], dict[str, Variable], Paths]:
        """Return what a function is given, its variables, and the names of members that are parameters."""
        tokens, scope = self.preprocessed.tokens, self.scope
        members: dict[tuple[str, ...], str] = {}
        promised = said_in_promises(self.preprocessed.directives)
        taken = {*self.words, *(token.text for token in body)}
        inside = (text.open_paren + 1, text.close_paren)
        pieces = _with_templates(tokens, split_commas(tokens, *inside))
        parameters: list[FunctionParameter] = []
        variables: dict[str, Variable] = {}
        for first, behind in pieces:
            piece = tokens[first:behind]
            if not piece or (len(piece) == 1 and piece[0].text == "void"):
                continue
            spelled = self.source.text[piece[0].span.start : piece[-1].span.end]
            declarator: syntax.Declarator | None = None
            expanded = self._expand(piece)
            if [self._plain(token) for token in expanded] != [token.text for token in piece]:
                # The generated header knows nothing of the file's macros and types.
                spelled = self._text(expanded)
            with contextlib.suppress(GrammarError, TooDeepError):
                declarator = self.grammar.parameter(named_members(expanded, members), scope.types)
            if declarator is None:
                named = declared_name(piece)
                name = "" if named is None else named.text
                parameters.append(FunctionParameter(name, spelled))
                if named is not None:
                    variable = Variable(name, named.span, 0, is_parameter=True)
                    variable.fault, variable.message = "MF0315", f"the type of `{name}` is not understood"
                    if fault := next((token.fault for token in expanded if token.fault), ""):
                        variable.fault, variable.message = "MF0008", f"the type of `{name}` is not certain: {fault}"
                    variables[name] = variable
                    self._of_other_languages(variable, expanded, text)
                continue
            variable = declared(_without_least(declarator, variables), scope.typedefs, 0)
            variable.is_parameter = True
            if variable.fault in ("MF0216", "MF0315"):
                self._of_other_languages(variable, expanded, text)
            if variable.fault == "MF0201":
                self._of_rows(variable, piece, declarator.type.words, variables)
            if variable.name in variables:
                self.reporter.error("MF0307", declarator.name_span, f"`{variable.name}` is declared twice")
            variables[variable.name] = variable
            array = parameter_array(self.source, scope, variable, {**visible, **variables})
            structure = variable.structure
            one = FunctionParameter(variable.name, spelled, variable.type, array, variable.const)
            if variable.pointed is not None and not variable.rows:
                columns = 0 if structure is None else structure.columns
                one = replace(one, pointed=variable.pointed, columns=columns, least=_least(declarator))
            if structure is not None:
                const = "const " if variable.const else ""
                suffix = self.source.text[declarator.name_span.end : declarator.span.end]
                tagged = structure.name.startswith("struct ") or structure.members == COMPLEX
                tag = structure.name if tagged else ""
                flat = f"(*{one.name})" if declarator.type.pointers else f"{one.name}{suffix}"
                assert structure.element is not None
                spelled = f"{const}{structure.element.stored.spelling} {flat}[{structure.columns}]"
                one = replace(one, declaration=spelled, structure=tag, members=structure.members, slots=structure.slots)
            later = self._expand(tokens[behind : text.close_paren])
            own = member_parameters(declarator, scope, [*later, *promised], body, self.returning, taken)
            if declarator.type.pointers and not own and _has_member(body, variable.name):
                variable.reason = _CHANGING_MEMBERS
                name = variable.name
                variable.way_out = (
                    f"copy what the schedule needs to variables in front of it: `int n = {name}->n;`, `double *now = "
                    f"{name}->now;`. They may change places; store them back behind the loop: `{name}->now = now;`."
                )
            members |= {path: part.name for path, (part, _) in own.items()}
            variables |= {part.name: part for part, _ in own.values()}
            if own:
                written = self.source.text[piece[0].span.start : piece[-1].span.end]
                one = replace(one, parts=tuple(part for _, part in own.values()), text=written)
            parameters.append(one)
        spoken = named_members(body, members)
        parameters = [_with_given(one, variables, spoken, taken) for one in parameters]
        for variable in variables.values():
            variable.scope = {**visible, **variables}
        return tuple(parameters), variables, members

    def _of_rows(
        self, variable: Variable, piece: Sequence[Token], words: tuple[str, ...], before: Mapping[str, Variable]
    ) -> None:
        """Say of a table of pointers, ``float **x`` or ``float *x[n]``, how its rows are declared."""
        from metafork.frontend.text.other_languages.types import table_of_rows  # most files have none

        element = scalar_type(words, self.scope.typedefs)
        scalars = [one for one in before.values() if one.type is not None and one.name != "B"]
        sizes = [one.name for one in scalars if one.type is not None and not one.type.floating]
        if element is not None:
            advice = table_of_rows(piece, variable.name, element.spelling, sizes[:2] if len(sizes) > 1 else ("n", "m"))
            if advice is not None:
                advise(variable, "MF0201", hull(piece[0].span, piece[-1].span), advice)

    def _of_other_languages(self, variable: Variable, piece: Sequence[Token], text: FunctionText) -> None:
        """Say of a parameter of no known type what its type, or the template of its function, is elsewhere."""
        from metafork.frontend.text.other_languages.types import foreign_declaration, of_template  # most have none

        first = self.preprocessed.tokens[text.first]
        named = declared_name(piece)
        found = None if named is None or variable.fault == "MF0008" else foreign_declaration(piece, named)
        if found is not None:
            advise(variable, *found)
        elif first.text == "template":
            advise(variable, "MF0010", first.span, of_template(self.preprocessed.tokens[text.first : text.name]))

    def _expand(self, tokens: Sequence[Token]) -> list[Token]:
        try:
            return self.preprocessed.expand(tokens)
        except ExpansionError as error:
            raise self.reporter.refuse(error.code, error.span, error.message) from None

    def _plain(self, token: Token) -> str:
        """Return the spelling of a token that any other file understands."""
        if token.text in HEADER_TYPES or token.text not in self.scope.typedefs:
            return token.text
        return self.scope.typedefs[token.text].stored.spelling

    def _text(self, tokens: Sequence[Token]) -> str:
        joined = " ".join(self._plain(token) for token in tokens)
        return re.sub(r" ?\[ ?", "[", joined).replace(" ]", "]") or "int"


def _with_given(
    parameter: FunctionParameter, variables: dict[str, Variable], body: Sequence[Token], taken: set[str]
) -> FunctionParameter:
    """Return a parameter with the integer that says whether it is a null pointer, where a function may ask for that.

    The integer is one of the ``variables`` then; its name is ``taken``.
    """
    parts = tuple(_with_given(one, variables, body, taken) for one in parameter.parts)
    pointer = variables.get(parameter.name)
    alone = any(one.text == parameter.name and after.text not in ("[", "->") for one, after in pairwise(body))
    parameter = replace(parameter, nullable=alone and asks_for_null(body, parameter.name))
    if pointer is None or not alone or parts or (pointer.pointed is None and pointer.element is None):
        return replace(parameter, parts=parts)
    name = fresh(f"has_{parameter.name}", taken)
    given = Variable(name, pointer.span, 0, ScalarType.INT, is_parameter=True)
    pointer.given = variables[name] = given
    asked = FunctionParameter(name, f"int {name}", given.type, member=f"({parameter.name} != 0)")
    return replace(parameter, given=asked)


def _with_templates(tokens: Sequence[Token], pieces: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the parameters with the arguments of C++'s templates, ``std::array<float, 16> &x``, in one piece."""
    found: list[tuple[int, int]] = []
    depth = 0
    for first, behind in pieces:
        joined = depth > 0
        for token in tokens[first:behind]:
            if token.text == "[" and depth == 0:
                break
            depth = max(depth + token.text.count("<") - token.text.count(">"), 0)
        if joined:
            found[-1] = (found[-1][0], behind)
        else:
            found.append((first, behind))
    return found if depth == 0 else list(pieces)


_CHANGING_MEMBERS = (
    "its members are parameters where nothing may change them: the function stores to no member, and calls nothing but "
    "functions that return an expression."
)


def _has_member(tokens: Sequence[Token], name: str) -> bool:
    return any(one.text == name and after.text == "->" for one, after in pairwise(tokens))


def _without_least(declarator: syntax.Declarator, parameters: Mapping[str, Variable]) -> syntax.Declarator:
    """Return a parameter without its first extent where that is the least one, ``[static 1]``, in no parameter."""
    first, *rest = declarator.type.extents or (None,)
    if "static" not in declarator.type.storage or first is None or syntax.names_in(first) & parameters.keys():
        return declarator
    return replace(declarator, type=replace(declarator.type, extents=(None, *rest)))


def _least(declarator: syntax.Declarator) -> int:
    """Return how many elements there are at least: 4 of ``x[static 4]``."""
    first = declarator.type.extents[0] if "static" in declarator.type.storage and declarator.type.extents else None
    found = integer_constant(first.text) if isinstance(first, syntax.Constant) else None
    return 0 if found is None else found[0]


def parameter_array(
    source: Source, scope: FileScope, variable: Variable, visible: Mapping[str, Variable]
) -> ir.Array | None:
    """Return the array that a variable is to schedules, ``None`` where it is none or its extents are not understood."""
    if variable.element is None:
        return None

    def resolve(name: str) -> Symbol | None:
        found = visible.get(name)
        if found is None or found.type is None:
            raise RefusedError
        return ScalarSymbol(name, found.type, Origin.HOST, found.span)

    builder = ExpressionBuilder(Reporter(source), scope.typedefs, resolve, list)

    def of_the_file(expr: ir.Expr) -> ir.Expr:
        """Return an expression with the values of the file's constants, whose names other files do not know."""
        known: dict[str, ir.Expr] = {}
        for name in variables_in(expr):
            initial = visible[name].initial
            if initial is not None and visible[name].is_global:
                with suppress(RefusedError, NoValueError):
                    value = integer_value(of_the_file(builder.build(initial)), {})
                    known[name] = ir.IntConst(value, ScalarType.INT if abs(value) < 2**31 else ScalarType.LONG)
        return substitute(expr, known)

    try:
        extents = tuple(of_the_file(builder.build(extent)) for extent in variable.extents)
    except RefusedError:
        return None
    return ir.Array(variable.name, variable.element, extents, variable.span)
