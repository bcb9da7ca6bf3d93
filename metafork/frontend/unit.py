"""A whole file: find the functions that hold schedules, parse those, leave everything else as it stands.

Which brackets belong together is all that is asked of other code; a function that is full of extensions of some
compiler is skipped like any other.  A file whose schedules stand in no function is a bare fragment, as the papers print
them: its uninitialised scalars and arrays are the parameters of a function named after the file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from metafork.frontend.file_checks import FileChecks
from metafork.frontend.host.callee_bodies import HostCallees
from metafork.frontend.host.callees import Callees
from metafork.frontend.host.file_scope import FileScope
from metafork.frontend.host.fragment import is_argument, left_out
from metafork.frontend.host.given_integers import side_by_side
from metafork.frontend.host.host import HostFunction
from metafork.frontend.host.residency import host_accesses
from metafork.frontend.host.text_reader import TextReader
from metafork.frontend.host.transfers import transfers
from metafork.frontend.host.variables import Site, Variable
from metafork.frontend.members.returning import returning_functions, written_out
from metafork.frontend.members.structure_values import Paths, named_members
from metafork.frontend.nests.table_rows import led_to_rows
from metafork.frontend.pragmas.contraction import contraction_at
from metafork.frontend.pragmas.pointers import (
    Promise,
    at_schedule,
    endless,
    give_extent,
    of_row,
    one_element,
    pointers_used,
    promised_extents,
    without_unused,
)
from metafork.frontend.pragmas.promises import promises_within
from metafork.frontend.pragmas.schedule import schedule_pragma
from metafork.frontend.schedules.inlining.functions import Functions
from metafork.frontend.schedules.program import ProgramBuilder
from metafork.frontend.schedules.values.promised_sizes import in_parameters
from metafork.frontend.schedules.values.tables import ConstantMemory
from metafork.frontend.signatures import Signatures, callers, parameter_array
from metafork.frontend.text import syntax
from metafork.frontend.text.definitions import FunctionText, definitions
from metafork.frontend.text.other_languages.files import python_file
from metafork.frontend.text.other_languages.types import foreign_function
from metafork.frontend.text.parsing import nearly_right
from metafork.frontend.text.preprocessing.preprocessor import Preprocessed
from metafork.frontend.text.reporter import RefusedError
from metafork.frontend.text.tokens import (
    Token,
    first_from,
    hull,
)
from metafork.frontend.unit_name import unit_name
from metafork.ir import program as ir
from metafork.ir.messages.source import Source, Span
from metafork.ir.rewriting import variables as variables_in
from metafork.ir.translation_unit import (
    Assumption,
    Function,
    FunctionParameter,
    Schedule,
    StatedOrder,
    Transfer,
    TranslationUnit,
)


class UnitParser(TextReader):
    """Parses one source."""

    def __init__(
        self,
        source: Source,
        reassociate: bool = False,
        following: bool = False,
        assuming: bool = False,
    ) -> None:
        super().__init__(source, assuming=assuming)
        self._following = following
        self._reassociate = reassociate
        self._name = unit_name(source.name)
        self._assumptions: tuple[Assumption, ...] = ()
        self._preprocessed: Preprocessed | None = None
        self._words = frozenset[str]()
        self._functions: list[Function] = []
        self._schedules: list[Schedule] = []
        self._transfers: list[Transfer] = []
        self._called: Functions | None = None
        self._callees = Callees()
        self._callers: list[Function] = []
        self._constants = ConstantMemory()
        self._small_floats: tuple[str, ...] = ()

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
        if self._preprocessed is not None and not self._reporter.failed:
            FileChecks(self._preprocessed, self._reporter).generated(self._name, len(self._schedules))
        self._reporter.finish()
        return TranslationUnit(
            self._source,
            self._name,
            tuple(self._functions),
            tuple(self._schedules),
            tuple(self._transfers),
            tuple(str(path) for path in self._headers.found),
            tuple(self._callers),
            self._assumptions,
            small_floats=self._small_floats,
        )

    def _parse(self) -> None:
        if (python := python_file(self._source.text)) is not None:
            raise self._reporter.advise("MF0002", *python)
        preprocessed, partners = self._tokens()
        preprocessed.define_enumerators(partners)
        self._assumptions = preprocessed.assumptions
        self._preprocessed = preprocessed
        tokens = preprocessed.tokens
        self._words = frozenset(token.text for token in tokens)
        checks = FileChecks(preprocessed, self._reporter)
        functions, outside = definitions(tokens, partners)
        checks.spelling()
        checks.hidden([hull(tokens[one.open_brace].span, tokens[one.close_brace].span) for one in functions])
        checks.taken()
        if not functions and self._reporter.failed:
            raise RefusedError  # it is no fragment
        whole = self._lines.span(0, len(self._source.text))
        keywords = checks.schedules(whole)
        hidden = [(one.first, one.close_brace) for one in functions if checks.hides(one)]
        if not keywords:
            nearly_right.no_schedule(self._reporter, tokens, partners, whole)
            checks.loops(hidden)
            raise RefusedError if self._reporter.failed else checks.without_schedule(whole, partners, functions)
        holding = [one for one in functions if any(one.open_brace < at < one.close_brace for at in keywords)]
        stray = [at for at in keywords if not any(one.open_brace < at < one.close_brace for one in functions)]
        if not stray:
            checks.loops([*hidden, *((one.first, one.close_brace) for one in holding)])
        checks.around(stray)
        if stray and functions:
            for at in stray:
                self._reporter.error("MF0015", tokens[at].span, "this schedule stands in no function")
        scope = FileScope(preprocessed, self._grammar)
        self._small_floats = scope.small_floats
        if stray and not functions:
            checks.directives(whole)
            for included in preprocessed.included:
                scope.add_header(included)
            self._fragment(preprocessed, scope)
            return
        self._declare(preprocessed, scope, functions, outside)
        self._called = Functions(preprocessed, self._grammar, self._reporter, scope, functions)
        announcing = {tokens[one.name].text for one in holding}
        returning = returning_functions(preprocessed, functions, scope)
        signatures = Signatures(
            self._source, self._grammar, self._reporter, preprocessed, scope, returning, self._words
        )
        self._callees = Callees(announcing, HostCallees(preprocessed, self._grammar, scope, functions).find)
        calling = callers(tokens, functions, holding)
        for definition in functions:
            if definition in calling:
                caller = self._caller(definition, signatures)
                self._callers.append(caller)
                if caller.accesses is not None:
                    announcing.add(caller.name)
            if definition not in holding:
                continue
            try:
                self._function(preprocessed, definition, scope, signatures)
            except RefusedError:
                continue

    # --- functions --------------------------------------------------------------------------------------------

    def _function(
        self,
        preprocessed: Preprocessed,
        text: FunctionText,
        scope: FileScope,
        signatures: Signatures,
    ) -> None:
        tokens = preprocessed.tokens
        whole = hull(tokens[text.first].span, tokens[text.close_brace].span)
        body_span = hull(tokens[text.open_brace].span, tokens[text.close_brace].span)
        FileChecks(preprocessed, self._reporter).directives(whole)
        foreign = foreign_function(self._expand(preprocessed, tokens[text.first : text.name]))
        if foreign is not None and foreign[0] == "MF0217":
            self._reporter.advise(*foreign)
        visible = {
            name: one for name, one in scope.variables.items() if one.span.start < whole.start or one.fault == "MF0206"
        }
        body = self._expand(preprocessed, tokens[text.open_brace + 1 : text.close_brace])
        given = {token.text for token in tokens[text.open_paren : text.close_paren]}
        seen = {name: function for name, function in signatures.returning.items() if name not in given}
        body = written_out(body, seen, scope.known)
        parameters, variables, members = signatures.parameters(text, visible, body)
        body = named_members(body, members)
        name = tokens[text.name].text
        promised, others = self._pointers(preprocessed, whole, body, variables, members)
        host = self._host(preprocessed, body, body_span, scope, visible, variables)
        parameters = self._with_pointers(parameters, promised, variables, host, scope)
        single, _ = pointers_used(body, {one.name: one for one in host.variables})
        sites = self._sites(host, others, single)
        tables = any(site.led for site in sites)
        sites = self._add_schedules(preprocessed, host, sites, name)
        changed = ((one.visible, site.visible) for one, site in zip(sites, host.sites, strict=True))
        pointers = [old[key] for new, old in changed for key in old if new[key] is not old[key]]
        known = None if tables else host_accesses(host, tokens, preprocessed.directives, self._callees, pointers)
        self._functions.append(
            Function(
                name=name,
                returns=signatures.returns(text),
                parameters=parameters,
                span=whole,
                body=body_span,
                static=signatures.is_static(text),
                accesses=known,
            )
        )
        followed = {one.name for one in variables.values() if one.followed}
        function = self._asked(self._functions[-1], followed)
        self._functions[-1] = replace(function, globals=tuple(self._globals(function, visible)))

    def _asked(self, function: Function, followed: set[str]) -> Function:
        """Return a function with what its schedules, and the extents of pointers, ask of pointers, and no more.

        Those that are ``followed`` are no arrays if no schedule uses them.
        """
        programs = [one.program for one in self._schedules if one.function == function.name]
        body = function.body.start  # locals may have the same names
        used = {one.whole or one.name for each in programs for one in each.arrays if one.span.start < body}
        named = {one.name for each in programs for one in each.parameters}
        named |= {one.name for each in programs for one in each.values}
        arrays = [one.array for one in function.values if one.array is not None]
        named = named.union(*(variables_in(extent) for array in arrays for extent in array.extents))

        def asked(parameter: FunctionParameter) -> FunctionParameter:
            given = parameter.given
            kept = given if given is not None and given.name in named else None
            array = None if parameter.name in followed - used else parameter.array
            return replace(parameter, array=array, parts=tuple(map(asked, parameter.parts)), given=kept)

        return replace(function, parameters=tuple(map(asked, function.parameters)))

    def _globals(self, function: Function, visible: Mapping[str, Variable]) -> Iterator[FunctionParameter]:
        """Yield the variables of the file that the sizes of a function depend on."""
        own = {parameter.name for parameter in function.values}
        named = {one.name for s in self._schedules if s.function == function.name for one in s.program.parameters}
        arrays = [parameter.array for parameter in function.values if parameter.array is not None]
        named = named.union(*(variables_in(extent) for array in arrays for extent in array.extents))
        for variable in (visible[name] for name in sorted(named - own) if name in visible):
            if variable.type is not None and not variable.const:
                declaration = f"{variable.type.spelling} {variable.name}"
                yield FunctionParameter(variable.name, declaration, variable.type)

    def _caller(self, text: FunctionText, signatures: Signatures) -> Function:
        """Return a function without schedules that calls one with schedules, followed where all of it is known."""
        tokens = signatures.preprocessed.tokens
        function = signatures.function(text)
        called = {one.text for one in tokens[text.open_brace : text.close_brace]} & self._callees.drop_ins
        callee = self._callees.find(function.name) if called else None
        directives = signatures.preprocessed.directives
        found = None if callee is None else host_accesses(callee.host, tokens, directives, self._callees)
        return replace(function, accesses=found)

    def _pointers(
        self,
        preprocessed: Preprocessed,
        whole: Span,
        body: Sequence[Token],
        variables: dict[str, Variable],
        members: Paths,
    ) -> tuple[Collection[str], Sequence[Promise]]:
        """Give the parameters that schedules use as arrays their extents; return their names, and what else is said."""
        promised, others = promised_extents(
            preprocessed.directives,
            preprocessed.tokens,
            whole,
            variables,
            self._grammar,
            partial(self._expand, preprocessed),
            self._reporter,
            members,
        )
        single, others_used = pointers_used(body, variables)
        promised = {name: one_element(variables[name].span) for name in single} | promised
        for name in others_used - promised.keys() if self._following else ():
            promised[name] = endless(variables[name].span)
            variables[name].followed = True
        for name, extent in promised.items():
            give_extent(variables[name], extent)
        return promised, others

    def _with_pointers(
        self,
        parameters: tuple[FunctionParameter, ...],
        pointers: Collection[str],
        variables: dict[str, Variable],
        host: HostFunction,
        scope: FileScope,
    ) -> tuple[FunctionParameter, ...]:
        """Return the parameters with pointers as arrays, whose extents are written out in parameters."""

        def leading(parameter: FunctionParameter) -> FunctionParameter:
            if parameter.name not in pointers:
                return replace(parameter, parts=tuple(map(leading, parameter.parts)))
            variable = variables[parameter.name]
            first = in_parameters(variable.extents[0], host, self._source, self._reporter)
            variable.extents = (first, *variable.extents[1:])
            return replace(parameter, array=parameter_array(self._source, scope, variable, host.outer))

        return tuple(map(leading, parameters))

    def _sites(self, host: HostFunction, said: Sequence[Promise], single: Collection[str]) -> list[Site]:
        """Return the schedules of a function, to which pointers among its variables are arrays."""
        sites = [led_to_rows(site, self._words) for site in host.sites]
        named = {one.name for one in host.variables if one.pointed is not None}
        rows = [row.text for site in sites for row in site.led if row.number is not None]
        for promise in said:
            if promise.name not in named and not any(of_row(row, [promise]) for row in rows):
                message = f"`{promise.name}` does not point to elements of a scalar type"
                self._reporter.error("MF0321", promise.span, message)

        following = single if self._following else None
        return [at_schedule(host, site, said, following, self._words, self._reporter) for site in sites]

    def _add_schedules(
        self, preprocessed: Preprocessed, host: HostFunction, at: Sequence[Site], function: str
    ) -> list[Site]:
        """Take note of the schedules of a function; return them with no more pointers as arrays than they use."""
        settled = [*at]
        last: tuple[Site, ir.Program] | None = None
        sites: dict[int, Site] = {}
        programs: dict[int, ir.Program] = {}
        spoken: frozenset[str] | None = None
        if self._reassociate:
            macros = preprocessed.macros_within(host.body.span)
            spoken = self._words.union(macros)
        for place, site in enumerate(at):
            number = len(self._schedules)
            words = site.statement.static_words
            FileChecks(preprocessed, self._reporter).schedule(hull(words or site.statement.span, site.statement.span))
            builder = ProgramBuilder(self._source, self._reporter, host, site, self._called, spoken, self._constants)
            try:
                program = builder.build(f"{self._name}_k{number}", function)
            except RefusedError:
                continue
            self._check_names(preprocessed, host.body.span, program)
            directives = schedule_pragma(preprocessed.directives, preprocessed.tokens, (site.statement.span, words))
            programs[number] = program
            doubts = (tuple(sorted(builder.entry_values)), tuple(sorted(builder.sized_arrays)))
            span = site.statement.span
            promises = promises_within(preprocessed.directives, span, program, self._reporter)
            contraction = contraction_at(preprocessed.directives, preprocessed.tokens, span)
            order: StatedOrder | None = None
            if builder.ordered:
                grid = tuple(loop.extent for loop in program.grid)
                order = StatedOrder(grid, builder.ordered, builder.parts, builder.second is None)
            written = self._source.text[span.start :].startswith("meta_schedule")
            first = Schedule(
                number, function, span, program, *doubts, promises, contraction, stated_order=order, hidden=not written
            )
            named = {one.name for one in program.parameters} | {one.name for one in program.values}
            pointers = ((one.given, name) for name, one in site.visible.items() if one.given is not None)
            asked = tuple((one.name, name) for one, name in pointers if not one.is_parameter and one.name in named)
            given = directives and (directives.rest, directives.span)
            led = tuple((row.name, row.text) for row in site.led if row.number is not None)
            left_out = tuple(builder.left_out)
            arrays = [one.whole or one.name for one in program.arrays]
            settled[place] = without_unused(site, host.sites[place], arrays)
            first = replace(first, static_words=words, asked=asked, led=led, directives=given, left_out=left_out)
            if self._following and last is not None:
                both = {one.name for each in (program, last[1]) for one in each.parameters}
                first = replace(first, beside=side_by_side(host, last[0], site, both))
            last = site, program
            first = replace(first, followed=builder.followed)
            self._schedules.append(first)
            sites[number] = settled[place]
            if builder.second is not None:
                assert order is not None
                program = builder.build_second(f"{self._name}_k{number + 1}", function)
                sites[number + 1], programs[number + 1] = settled[place], program
                end = replace(order, last=True)
                second = Schedule(number + 1, function, span, program, *doubts, contraction=False, stated_order=end)
                self._schedules.append(replace(second, beside=True, followed=builder.followed))
        if not self._reporter.failed:
            pragmas = [one.span for one in preprocessed.directives if one.word == "pragma"]
            pragmas += [span for span, _ in host.body.pragmas]
            behind = [first_from(preprocessed.tokens, span.end) for span in pragmas]
            fixed = {one.span.start for at in behind for one in preprocessed.tokens[at : at + 1]}
            self._transfers.extend(transfers(host, sites, programs, fixed))
        return settled

    def _check_names(self, preprocessed: Preprocessed, body: Span, program: ir.Program) -> None:
        """Refuse variables that the host file must name where a macro of that name may stand for something else."""
        taken = preprocessed.macros_within(body)
        named = {one.name: one.span for one in program.parameters} | {one.name: one.span for one in program.values}
        named |= {one.whole or one.name: one.span for one in program.arrays}
        for name, span in named.items():
            if name in taken:
                message = f"`{name}` is also the name of a macro in this function"
                self._reporter.error("MF0008", span, message, related=((taken[name], "the macro"),))

    # --- fragments --------------------------------------------------------------------------------------------

    def _fragment(self, preprocessed: Preprocessed, scope: FileScope) -> None:
        whole = self._lines.span(0, len(self._source.text))
        tokens = self._expand(preprocessed, preprocessed.tokens)
        host = self._host(preprocessed, tokens, whole, scope, scope.variables, {}, fragment=True)
        parameters: list[FunctionParameter] = []
        dropped: list[Span] = []
        written = {one.span: one for one in host.variables}
        for item in host.body.items:
            if not isinstance(item, syntax.Declaration):
                continue
            taken = [one for one in item.declarators if is_argument(one, written)]
            for declarator in taken:
                variable = written[declarator.name_span]
                if variable.structure is not None:
                    message = f"`{variable.name}`, an argument of the fragment, has structures for elements"
                    reason = "the function that a fragment becomes stands where its types are not declared yet."
                    way_out = "write a function."
                    self._reporter.error("MF0205", variable.span, message, reason=reason, way_out=way_out)
                array = None
                if variable.element is not None:
                    array = parameter_array(self._source, scope, variable, variable.scope)
                    self._check_argument(variable, {one.name for one in parameters})
                parameters.append(
                    FunctionParameter(
                        variable.name, self._argument_text(item, declarator), variable.type, array, variable.const
                    )
                )
                variable.is_parameter = True
            dropped += left_out(item, taken)
        self._functions.append(
            Function(
                self._name,
                "void",
                tuple(parameters),
                whole,
                whole,
                fragment=True,
                dropped=tuple(dropped),
                accesses=host_accesses(host, preprocessed.tokens, preprocessed.directives, self._callees),
            )
        )
        self._add_schedules(preprocessed, host, host.sites, self._name)

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
