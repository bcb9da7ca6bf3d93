"""A whole file: find the functions that hold schedules, parse those, leave everything else as it stands.

Which brackets belong together is all that is asked of other code; a function that is full of extensions of some
compiler is skipped like any other.  A file whose schedules stand in no function is a bare fragment, as the papers print
them: its uninitialised scalars and arrays are the parameters of a function named after the file.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from pathlib import PurePath

from metafork.frontend import syntax
from metafork.frontend.c_grammar import Grammar, GrammarError, TooDeepError
from metafork.frontend.definitions import FunctionText, declared_name, definitions, split_commas
from metafork.frontend.expressions import ExpressionBuilder, Origin, ScalarSymbol, Symbol
from metafork.frontend.fragment import is_argument, left_out
from metafork.frontend.host import HostFunction, Site, Variable, declared
from metafork.frontend.preprocessor import CONDITIONAL_WORDS, ExpansionError, Preprocessed
from metafork.frontend.program import ProgramBuilder
from metafork.frontend.reporter import RefusedError, Reporter
from metafork.frontend.structure import Structure, is_schedule_keyword, similar
from metafork.frontend.tokens import (
    BracketError,
    LineMap,
    Token,
    TokenKind,
    UnterminatedCommentError,
    hull,
    match_brackets,
    tokenize,
)
from metafork.frontend.transfers import transfers
from metafork.frontend.vocabulary import HEADER_TYPES, OTHER_TYPES, scalar_type
from metafork.ir import program as ir
from metafork.ir.source import Source, Span
from metafork.ir.translation_unit import Function, FunctionParameter, Schedule, Transfer, TranslationUnit
from metafork.ir.types import ScalarType

_C_WORDS = frozenset(
    {
        *("auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern"),
        *("float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed"),
        *("sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while"),
    }
)

MOST_TOKENS = 150_000
"""Tokens of a function with a schedule, macros expanded: some seconds of parsing."""


def unit_name(source_name: str) -> str:
    """Return the C identifier that outputs are named after: the stem of the file's name, mended where it is none."""
    stem = re.sub(r"[^A-Za-z0-9_]", "_", PurePath(source_name).name.removesuffix(".mf")).strip("_")
    if not stem:
        return "program"
    return f"program_{stem}" if stem[0].isdigit() or stem in _C_WORDS else stem


class UnitParser:
    """Parses one source."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._reporter = Reporter(source)
        self._grammar = Grammar()
        self._lines = LineMap(source.text)
        self._name = unit_name(source.name)
        self._typedefs: dict[str, ScalarType] = dict(HEADER_TYPES)
        self._types = frozenset(HEADER_TYPES) | OTHER_TYPES
        self._functions: list[Function] = []
        self._schedules: list[Schedule] = []
        self._transfers: list[Transfer] = []

    def parse(self) -> TranslationUnit:
        """Return the parsed file; raises ``DiagnosticsError`` with every fault that was found."""
        try:
            self._parse()
        except RefusedError:
            pass  # reported; finish raises
        except RecursionError:
            # Single limits hold everywhere, but limits of several kinds may be met at once.
            span = self._lines.span(0, 0)
            self._reporter.error("MF0005", span, "statements and expressions are nested too deeply in this file")
        self._reporter.finish()
        return TranslationUnit(
            self._source, self._name, tuple(self._functions), tuple(self._schedules), tuple(self._transfers)
        )

    def _parse(self) -> None:
        preprocessed, partners = self._tokens()
        preprocessed.define_enumerators(partners)
        tokens = preprocessed.tokens
        self._check_spelling(tokens)
        keywords = [index for index in range(len(tokens)) if is_schedule_keyword(tokens, index)]
        if not keywords:
            self._check_loops(tokens, [])
            if not self._reporter.failed:
                place = tokens[0].span if tokens else self._lines.span(0, 0)
                raise self._reporter.refuse("MF0002", place, "there is no `meta_schedule` in this file")
            raise RefusedError
        functions, outside = definitions(tokens, partners)
        holding = [one for one in functions if any(one.open_brace < at < one.close_brace for at in keywords)]
        stray = [at for at in keywords if not any(one.open_brace < at < one.close_brace for one in functions)]
        if not stray:
            self._check_loops(tokens, [(one.first, one.close_brace) for one in holding])
        if stray and functions:
            for at in stray:
                self._reporter.error("MF0015", tokens[at].span, "this schedule stands in no function")
        if stray and not functions:
            self._check_directives(preprocessed, self._lines.span(0, len(self._source.text)))
            self._fragment(preprocessed)
            return
        globals_ = self._globals(preprocessed, outside)
        for one in functions:
            name = tokens[one.name]
            function = Variable(name.text, name.span, name.span.start)
            function.fault, function.message = "MF0206", f"`{name.text}` is a function"
            globals_.setdefault(name.text, function)
        for definition in holding:
            try:
                self._function(preprocessed, definition, globals_)
            except RefusedError:
                continue

    # --- text -------------------------------------------------------------------------------------------------

    def _tokens(self) -> tuple[Preprocessed, dict[int, int]]:
        try:
            preprocessed = Preprocessed(tokenize(self._source.text, self._lines))
        except UnterminatedCommentError as error:
            span = self._lines.span(error.offset, error.offset + 2)
            raise self._reporter.refuse("MF0003", span, "this comment is not closed") from None
        for directive in preprocessed.unbalanced:
            self._reporter.error("MF0004", directive.span, f"this `#{directive.word}` has no partner")
        try:
            return preprocessed, match_brackets(preprocessed.tokens)
        except BracketError as error:
            # Two branches of an #if may open the same brace; then the first branch stands for both.
            with contextlib.suppress(BracketError):
                single = preprocessed.first_branches()
                return single, match_brackets(single.tokens)
            related = ((error.opened.span, "this bracket is open"),) if error.opened is not None else ()
            message = f"this `{error.token.text}` has no partner"
            raise self._reporter.refuse("MF0004", error.token.span, message, related=related) from None

    def _check_spelling(self, tokens: Sequence[Token]) -> None:
        for index, token in enumerate(tokens[:-1]):
            if token.kind is not TokenKind.NAME or token.text == "meta_schedule":
                continue
            following = tokens[index + 1]
            if following.text not in ("{", "cache", "meta_for"):
                continue
            if similar(token.text, ("meta_schedule",), 0.8):
                self._reporter.error(
                    "MF0011", token.span, f"`{token.text}` is no keyword; did you mean `meta_schedule`?"
                )

    def _check_loops(self, tokens: Sequence[Token], parsed: list[tuple[int, int]]) -> None:
        """Refuse every ``meta_for`` in text that is not parsed, which would be carried over and make no sense there."""
        for index, token in enumerate(tokens[:-1]):
            if token.text != "meta_for" or tokens[index + 1].text != "(":
                continue
            if not any(first <= index < behind for first, behind in parsed):
                self._reporter.error("MF0012", token.span, "a `meta_for` stands outside every `meta_schedule`")

    def _check_directives(self, preprocessed: Preprocessed, span: Span) -> None:
        """Refuse conditional compilation around or inside a schedule, and directives inside one."""
        if preprocessed.reduced and (conditional := preprocessed.within_conditional(span)) is not None:
            raise self._reporter.refuse(
                "MF0006", conditional.opening, "the branches of this condition open and close different brackets"
            )
        for index, token in enumerate(preprocessed.tokens):
            if not (span.start <= token.span.start < span.end) or not is_schedule_keyword(preprocessed.tokens, index):
                continue
            conditional = preprocessed.within_conditional(token.span)
            if conditional is not None:
                self._reporter.error(
                    "MF0006",
                    conditional.opening,
                    "a schedule stands under this condition",
                    related=((token.span, "the schedule"),),
                )

    def _check_schedule_text(self, preprocessed: Preprocessed, schedule: Span) -> None:
        for directive in preprocessed.directives:
            inside = schedule.start <= directive.span.start < schedule.end
            if inside and directive.word not in ("pragma", *CONDITIONAL_WORDS):
                self._reporter.error("MF0007", directive.span, f"`#{directive.word}` stands inside a schedule")
        for conditional in preprocessed.conditionals:
            if schedule.start <= conditional.start < schedule.end:
                self._reporter.error("MF0006", conditional.opening, "conditional compilation inside a schedule")

    def _expand(self, preprocessed: Preprocessed, tokens: Sequence[Token]) -> list[Token]:
        try:
            return preprocessed.expand(tokens)
        except ExpansionError as error:
            raise self._reporter.refuse(error.code, error.span, error.message) from None

    # --- declarations of the file -----------------------------------------------------------------------------

    def _globals(self, preprocessed: Preprocessed, outside: list[tuple[int, int]]) -> dict[str, Variable]:
        """Note the types that the file defines; return the variables that it declares outside functions."""
        found: dict[str, Variable] = {}
        for first, behind in outside:
            tokens = preprocessed.tokens[first:behind]
            if any(token.text == "{" for token in tokens) and tokens[0].text not in ("typedef",):
                continue
            try:
                simple = self._grammar.simple_statement(preprocessed.expand(tokens), self._types)
            except (GrammarError, TooDeepError, ExpansionError):
                continue
            if not isinstance(simple, syntax.Declaration):
                continue
            for declarator in simple.declarators:
                if "typedef" in declarator.type.storage:
                    self._types |= {declarator.name}
                    scalar = scalar_type(declarator.type.words, self._typedefs)
                    if scalar is not None and not declarator.type.pointers and not declarator.type.extents:
                        self._typedefs[declarator.name] = scalar
                    else:
                        self._typedefs.pop(declarator.name, None)
                elif not declarator.type.function:
                    variable = declared(declarator, self._typedefs, declarator.span.start)
                    variable.scope = dict(found)
                    variable.is_global = True
                    found[declarator.name] = variable
        return found

    # --- functions --------------------------------------------------------------------------------------------

    def _function(
        self,
        preprocessed: Preprocessed,
        text: FunctionText,
        globals_: dict[str, Variable],
    ) -> None:
        tokens = preprocessed.tokens
        whole = hull(tokens[text.first].span, tokens[text.close_brace].span)
        body_span = hull(tokens[text.open_brace].span, tokens[text.close_brace].span)
        self._check_directives(preprocessed, whole)
        known = {name: one for name, one in globals_.items() if one.span.start < whole.start}
        parameters, variables = self._parameters(preprocessed, text, known)
        body = self._expand(preprocessed, tokens[text.open_brace + 1 : text.close_brace])
        host = self._host(preprocessed, body, body_span, known, variables, fragment=False)
        head = self._expand(preprocessed, tokens[text.first : text.name])
        head = [token for token in head if token.text not in ("static", "inline")]
        name = tokens[text.name].text
        self._functions.append(
            Function(
                name=name,
                returns=self._text(head),
                parameters=parameters,
                span=whole,
                body=body_span,
                static=any(token.text == "static" for token in tokens[text.first : text.name]),
            )
        )
        self._add_schedules(preprocessed, host, name)

    def _host(
        self,
        preprocessed: Preprocessed,
        tokens: Sequence[Token],
        span: Span,
        globals_: dict[str, Variable],
        parameters: dict[str, Variable],
        fragment: bool,
    ) -> HostFunction:
        if len(tokens) > MOST_TOKENS:
            message = f"this function has {len(tokens)} tokens; at most {MOST_TOKENS} are taken"
            raise self._reporter.refuse("MF0016", span, message)
        try:
            structure = Structure(tokens, self._grammar, self._reporter, self._types, fragment)
        except BracketError as error:
            message = f"this `{error.token.text}` has no partner"
            raise self._reporter.refuse("MF0004", error.token.span, message) from None
        block = structure.statements(span)
        uncertain = tuple((one.start, one.end) for one in preprocessed.conditionals)
        host = HostFunction(self._typedefs, globals_, parameters, block, uncertain)
        host.faults = {name: one.fault for name, one in preprocessed.macros_at(span.end).items() if one.fault}
        return host

    def _parameters(
        self, preprocessed: Preprocessed, text: FunctionText, globals_: dict[str, Variable]
    ) -> tuple[tuple[FunctionParameter, ...], dict[str, Variable]]:
        tokens = preprocessed.tokens
        inside = (text.open_paren + 1, text.close_paren)
        pieces = split_commas(tokens, *inside)
        parameters: list[FunctionParameter] = []
        variables: dict[str, Variable] = {}
        since = tokens[text.open_brace].span.start
        for first, behind in pieces:
            piece = tokens[first:behind]
            if not piece or (len(piece) == 1 and piece[0].text == "void"):
                continue
            spelled = self._source.text[piece[0].span.start : piece[-1].span.end]
            declarator: syntax.Declarator | None = None
            expanded = self._expand(preprocessed, piece)
            if [self._plain(token) for token in expanded] != [token.text for token in piece]:
                spelled = self._text(expanded)  # the generated header knows nothing of the file's macros and types
            with contextlib.suppress(GrammarError, TooDeepError):
                declarator = self._grammar.parameter(expanded, self._types)
            if declarator is None:
                named = declared_name(piece)
                name = "" if named is None else named.text
                parameters.append(FunctionParameter(name, spelled))
                if named is not None:
                    variable = Variable(name, named.span, since, is_parameter=True)
                    variable.fault, variable.message = "MF0315", f"the type of `{name}` is not understood"
                    if fault := next((token.fault for token in expanded if token.fault), ""):
                        variable.fault, variable.message = "MF0008", f"the type of `{name}` is not certain: {fault}"
                    variables[name] = variable
                continue
            variable = declared(declarator, self._typedefs, since)
            variable.is_parameter = True
            if variable.name in variables:
                self._reporter.error("MF0307", declarator.name_span, f"`{variable.name}` is declared twice")
            variables[variable.name] = variable
            array = self._parameter_array(variable, {**globals_, **variables})
            parameters.append(FunctionParameter(variable.name, spelled, variable.type, array, variable.const))
        for variable in variables.values():
            variable.scope = {**globals_, **variables}
        return tuple(parameters), variables

    def _parameter_array(self, variable: Variable, scope: dict[str, Variable]) -> ir.Array | None:
        if variable.element is None:
            return None

        def resolve(name: str) -> Symbol | None:
            found = scope.get(name)
            if found is None or found.type is None:
                raise RefusedError
            return ScalarSymbol(name, found.type, Origin.HOST, found.span)

        builder = ExpressionBuilder(Reporter(self._source), self._typedefs, resolve, list)
        try:
            extents = tuple(builder.build(extent) for extent in variable.extents)
        except RefusedError:
            return None
        return ir.Array(variable.name, variable.element, extents, variable.span)

    def _add_schedules(self, preprocessed: Preprocessed, host: HostFunction, function: str) -> None:
        sites: dict[int, Site] = {}
        programs: dict[int, ir.Program] = {}
        for site in host.sites:
            number = len(self._schedules)
            self._check_schedule_text(preprocessed, site.statement.span)
            try:
                program = ProgramBuilder(self._source, self._reporter, host, site).build(
                    f"{self._name}_k{number}", function
                )
            except RefusedError:
                continue
            sites[number], programs[number] = site, program
            self._schedules.append(Schedule(number, function, site.statement.span, program))
        if not self._reporter.failed:
            self._transfers.extend(transfers(sites, programs))

    # --- fragments --------------------------------------------------------------------------------------------

    def _fragment(self, preprocessed: Preprocessed) -> None:
        whole = self._lines.span(0, len(self._source.text))
        tokens = self._expand(preprocessed, preprocessed.tokens)
        host = self._host(preprocessed, tokens, whole, {}, {}, fragment=True)
        parameters: list[FunctionParameter] = []
        dropped: list[Span] = []
        written = {one.span: one for one in host.variables}
        for item in host.body.items:
            if not isinstance(item, syntax.Declaration):
                continue
            taken = [one for one in item.declarators if is_argument(one, written)]
            for declarator in taken:
                variable = written[declarator.name_span]
                array = None
                if variable.element is not None:
                    array = self._parameter_array(variable, variable.scope)
                    self._check_argument(variable, {one.name for one in parameters})
                parameters.append(
                    FunctionParameter(
                        variable.name, self._argument_text(item, declarator), variable.type, array, variable.const
                    )
                )
                variable.is_parameter = True
            dropped += left_out(item, taken)
        self._functions.append(
            Function(self._name, "void", tuple(parameters), whole, whole, fragment=True, dropped=tuple(dropped))
        )
        self._add_schedules(preprocessed, host, self._name)

    def _check_argument(self, variable: Variable, before: set[str]) -> None:
        """Refuse an array of a fragment whose extents are computed in it: it would be declared before they are."""
        for extent in variable.extents:
            for node in syntax.walk(extent):
                if isinstance(node, syntax.Name) and node.name in variable.scope and node.name not in before:
                    self._reporter.error(
                        "MF0312",
                        extent.span,
                        f"`{variable.name}` is an argument of the fragment, and `{node.name}` is computed in it",
                        way_out="use uninitialised scalars that are declared before, or write a function.",
                    )

    def _argument_text(self, declaration: syntax.Declaration, declarator: syntax.Declarator) -> str:
        first = declaration.declarators[0]
        specifiers = self._source.text[declaration.span.start : first.span.start]
        return f"{' '.join(specifiers.split())} {self._source.text[declarator.span.start : declarator.span.end]}"

    def _plain(self, token: Token) -> str:
        """Return the spelling of a token that any other file understands."""
        if token.text in HEADER_TYPES or token.text not in self._typedefs:
            return token.text
        return self._typedefs[token.text].spelling

    def _text(self, tokens: Sequence[Token]) -> str:
        joined = " ".join(self._plain(token) for token in tokens)
        return re.sub(r" ?\[ ?", "[", joined).replace(" ]", "]") or "int"
