"""From a schedule and its host to a ``Program``: parameters, value arguments, derived scalars, assumptions."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from metafork.frontend.host.array_moves import moves
from metafork.frontend.host.given_integers import changed_before, given_integers
from metafork.frontend.host.host import HostFunction
from metafork.frontend.host.variables import Site, Variable
from metafork.frontend.host.whole_loops import whole_loops
from metafork.frontend.nests.assertions import facts_in
from metafork.frontend.nests.grid_and_threads import Known, with_grid_and_threads
from metafork.frontend.nests.local_pointers import with_places
from metafork.frontend.nests.own_arrays import with_own_arrays
from metafork.frontend.nests.own_variables import with_own_variables
from metafork.frontend.nests.table_rows import with_rows
from metafork.frontend.schedules.inlining.functions import Functions
from metafork.frontend.schedules.local_arrays import number_of
from metafork.frontend.schedules.nest import Nest, NestBuilder
from metafork.frontend.schedules.small_floats import with_stored_bits
from metafork.frontend.schedules.structure_views import Views, accessed
from metafork.frontend.schedules.symbols import ArraySymbol, Origin, ScalarSymbol, Symbol, UnusableSymbol
from metafork.frontend.schedules.values.derived import Definition, HostValues
from metafork.frontend.schedules.values.static_values import StaticReader
from metafork.frontend.schedules.values.tables import ConstantMemory
from metafork.frontend.text import syntax
from metafork.frontend.text.clauses.keywords import similar
from metafork.frontend.text.free_names import free_names
from metafork.frontend.text.reporter import RefusedError, Reporter
from metafork.frontend.text.vocabulary import scalar_type
from metafork.ir import program as ir
from metafork.ir.arithmetic.evaluation import NoValueError, integer_value
from metafork.ir.arithmetic.math_functions import SIGNATURES
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.control import control_names, variables_of
from metafork.ir.mapping import Mapping
from metafork.ir.messages.source import Source, Span
from metafork.ir.rewriting import names_in
from metafork.ir.translation_unit import Followed

MOST_BLOCKS = 32
"""Blocks that a multiprocessor runs at once, on the GPUs that run most."""


def _unusable(variable: Variable) -> UnusableSymbol:
    return UnusableSymbol(
        variable.fault, variable.message, variable.span, variable.reason, variable.way_out, variable.at
    )


class ProgramBuilder:
    """Builds the program of one schedule.

    Where what is not known may move or resize its arrays, ``entry_values`` are the parameters that must have the values
    that they had at the function's beginning, and ``sized_arrays`` local arrays whose sizes are to be compared.
    Where floating-point numbers are added up (``reassociate``, of ``NestBuilder``), ``ordered`` are the extents of
    threads, and ``second`` is what adds up what the blocks have.  ``left_out`` are assertions in the schedule that are
    no facts about parameters.  Extents of some arrays are to be ``followed``.
    """

    def __init__(
        self,
        source: Source,
        reporter: Reporter,
        host: HostFunction,
        site: Site,
        functions: Functions | None = None,
        reassociate: Collection[str] | None = None,
        constants: ConstantMemory | None = None,
    ) -> None:
        self._reporter = reporter
        self._constants = constants or ConstantMemory()
        self._host = host
        self._site = site
        self._functions = functions
        self._values = HostValues(host, site, source, None if functions is None else functions.quiet)
        self._arrays: dict[str, ir.Array | None] = {}
        self._results = frozenset(name.name for name in syntax.results_of(site.statement))
        self.entry_values: set[str] = set()
        self.sized_arrays: set[str] = set()
        self.ordered: tuple[tuple[ir.Expr, ...], ...] = ()
        self.parts: tuple[ir.Array, ...] = ()
        self.second: Nest | None = None
        self.left_out: list[Span] = []
        self.followed: Followed | None = None
        self._exchanged: dict[str, tuple[str, ...]] = {}
        self._conditions: tuple[syntax.Expression, ...] = ()
        self._reassociate = reassociate

    def build(self, name: str, function: str) -> ir.Program:
        """Return the program; raises ``RefusedError`` after reporting everything that is wrong with the schedule."""
        statement = with_own_variables(self._host, self._site, self._reporter)
        statement = replace(statement, body=with_rows(statement.body, self._site))
        find = (lambda _name: None) if self._functions is None else self._functions.find
        statement = with_own_arrays(statement, self._host, self._site, find, self._constant)
        body = with_places(statement.body, self._site.visible, self._host.typedefs)
        statement = replace(statement, body=body)
        known = Known(self._type_of, self._named_type, self._is_library)
        self._blocked = statement.block is not None
        statement, self._conditions = with_grid_and_threads(statement, self._reporter, known)
        named = free_names(statement.body)
        if self._functions is not None:
            named = named.union(*(free_names(one.body) for one in self._functions.reached(statement.body)))
        asked = [one.given for one in self._site.visible.values() if one.given is not None]
        builder = NestBuilder(
            self._reporter,
            self._host.typedefs,
            self._symbol,
            self._file_symbol,
            self._functions,
            [name for name, one in self._site.visible.items() if one not in asked],
            self._reserved(named),
            statement,
            self._reassociate,
        )
        nest: Nest | None = None
        with contextlib.suppress(RefusedError):
            nest = builder.build()
        if nest is None:
            raise RefusedError
        clause = self._cache_clause(nest, builder.undeclared)
        if self._reporter.failed:
            raise RefusedError
        self.ordered = nest.ordered
        second = nest.second
        if second is not None:
            lengths = {part.name for array in second.parts for one in array.extents for part in variables_of(one)}
            written = frozenset(second.targets)
            self.parts = second.parts
            self.second = Nest(second.grid, second.body, nest.scalars & lengths, written, written)
        program = self._assemble(name, function, nest, clause)
        listed = StaticReader(self._reporter, self._constant, frozenset(self._site.visible)).read(statement, program)
        return replace(program, static=listed, min_blocks=self._min_blocks(statement.min_blocks))

    def build_second(self, name: str, function: str) -> ir.Program:
        """Return the program that adds up what the blocks of the first have."""
        assert self.second is not None
        return self._assemble(name, function, self.second, None)

    def _type_of(self, name: str) -> ScalarType | None:
        """Return the type of a scalar of the host."""
        variable = self._site.visible.get(name)
        return None if variable is None else variable.type

    def _named_type(self, type_: syntax.TypeName) -> ScalarType | None:
        return scalar_type(type_.words, self._host.typedefs)

    def _is_library(self, name: str) -> bool:
        """Say whether a name is that of a function of the mathematical library, and of none of the file."""
        return name in SIGNATURES and (self._functions is None or name not in self._functions.names)

    # --- names of the host ------------------------------------------------------------------------------------

    def _symbol(self, name: str) -> Symbol | None:
        variable = self._site.visible.get(name)
        if variable is None:
            return None
        if variable.fault:
            return _unusable(variable)
        if name in self._results and self._adds_up(variable):
            array = self._array(variable)
            assert array is not None
            return ArraySymbol(array)
        if variable.type is not None:
            number = self._number(variable, variable.type) if variable.const else None
            return ScalarSymbol(name, variable.type, Origin.HOST, variable.span, variable.const, number)
        array = self._array(variable)
        if array is None:
            raise RefusedError
        return ArraySymbol(
            array,
            variable.const,
            members=array.members,
            pointer=variable.is_parameter or variable.pointed is not None,
            given=self._given(variable),
        )

    def _given(self, pointer: Variable) -> str:
        """Return the name of the integer that says whether a pointer is not null, empty where it may be another one."""
        here = pointer.since == self._site.order
        if pointer.given is None or not (here or self._host.stable(pointer, 0, self._site) is None):
            return ""
        return pointer.given.name

    def _adds_up(self, variable: Variable) -> bool:
        """Return whether a scalar can be the result of a reduction: nothing else reaches it."""
        type_ = variable.type
        plain = type_ is not None and (type_.integer or self._reassociate is not None) and type_ is not ScalarType.BOOL
        return plain and not (variable.const or variable.is_global or variable.escapes < math.inf)

    def _number(self, variable: Variable, type_: ScalarType) -> int | None:
        """Return the value of a ``const`` scalar where it is a number."""
        if variable.initial is not None:
            found = self._values.integer(variable.initial, variable.since, variable.scope)
            return None if found is None or found[1] else number_of(found[0], type_)
        definition = self._values.definition(variable)
        return None if definition is None else number_of(definition.expression, type_)

    def _min_blocks(self, clause: syntax.MinBlocksClause | None) -> ir.IntConst | None:
        """Return what ``meta_min_blocks`` says; a number that cannot be is reported (MF0115)."""
        if clause is None:
            return None
        number = self._constant(clause.number)
        if number is not None and 1 <= number <= MOST_BLOCKS:
            return ir.IntConst(number, span=clause.span)
        said = "this number of blocks is no integer constant"
        if number is not None:
            said = f"no multiprocessor runs {number} blocks at once" if number > 1 else "this number is less than 1"
        self._reporter.error("MF0115", clause.number.span, said)
        return None

    def _constant(self, value: syntax.Expression) -> int | None:
        """Return the value of an expression of constants, ``None`` where it is none."""
        found = self._values.integer(value, self._site.order, self._site.visible)
        if found is None:
            return None
        known = {
            one.name: number
            for one in found[1]
            if one.const and one.type is not None and (number := self._number(one, one.type)) is not None
        }
        try:
            return integer_value(found[0], known)
        except NoValueError:
            return None

    def _file_symbol(self, name: str) -> Symbol | None:
        """Return what a name stands for in a function of the file."""
        variable = self._host.file_scope.get(name)
        if variable is None:
            return None
        hiding = self._site.visible.get(name)
        if hiding is not None and hiding.span == variable.span:
            variable = hiding  # a pointer is an array at a schedule
        if hiding is not variable and variable.fault != "MF0206":
            message = f"`{name}` is another variable where the schedule stands"
            place = variable.span if hiding is None else hiding.span
            return UnusableSymbol("MF0223", message, place)
        return _unusable(variable) if variable.fault else self._symbol(name)

    def _array(self, variable: Variable) -> ir.Array | None:
        """Return an array of the host with its extents as they hold at the schedule; ``None`` after reporting."""
        if variable.type is not None:
            return ir.Array(variable.name, variable.type, (ir.IntConst(1),), variable.span, scalar=True)
        if variable.name not in self._arrays:
            extents: list[ir.Expr] = []
            for extent in variable.extents:
                built = self._extent(variable, extent)
                if built is None:
                    break
                extents.append(built)
            whole = len(extents) == len(variable.extents) and self._stays(variable)
            assert variable.element is not None
            members = () if variable.structure is None else variable.structure.members
            slots = () if variable.structure is None else variable.structure.slots
            array = ir.Array(variable.name, variable.element, tuple(extents), variable.span, members, slots=slots)
            array = replace(array, table=variable.table)
            self._arrays[variable.name] = array if whole else None
        return self._arrays[variable.name]

    def _stays(self, variable: Variable) -> bool:
        """Return whether an array is whole at the schedule, wherever it is then; false after reporting."""
        if not variable.is_parameter:
            return True
        found = moves(self._host, self._site, variable)
        if found.refused is not None:
            self._reporter.error(
                "MF0316",
                variable.span,
                f"the array `{variable.name}` is moved before the schedule",
                related=((found.refused.span, f"`{variable.name}` may get another place here"),),
            )
            return False
        if found.doubtful:
            self.entry_values.add(variable.name)
        self._exchanged[variable.name] = found.others
        return True

    def _extent(self, variable: Variable, extent: syntax.Expression) -> ir.Expr | None:
        found = self._values.integer(extent, variable.since, variable.scope, checked=True)
        if found is not None:
            here = variable.since == self._site.order  # a pointer, of as many elements as variables now say
            changes = {} if here else {one.name: self._host.stable(one, variable.since, self._site) for one in found[1]}
            doubted = {name for name, change in changes.items() if change is not None}
            if variable.is_parameter:
                self.entry_values |= doubted
            elif doubted and variable.structure is not None:
                message = f"the extent of `{variable.name}`, an array of structures, may change before the schedule"
                self._reporter.error("MF0309", extent.span, message)
                return None
            elif doubted:
                self.sized_arrays.add(variable.name)
            return found[0]
        called = {id(node.callee) for node in syntax.walk(extent) if isinstance(node, syntax.Invocation)}
        for node in syntax.walk(extent):
            if not isinstance(node, syntax.Name) or id(node) in called:
                continue
            used = variable.scope.get(node.name)
            if (used is None or node.uncertain) and node.name in self._host.faults:
                message = f"{self._host.faults[node.name]}, so it cannot size an array of a schedule"
                self._reporter.error("MF0008", node.span, message)
                return None
            if used is None:
                self._reporter.error("MF0301", node.span, f"`{node.name}` is not declared")
                return None
            if used.type is not None:
                change = self._host.stable(used, variable.since, self._site)
                if change is not None:
                    self._reporter.error(
                        "MF0309",
                        extent.span,
                        f"the extent of `{variable.name}` uses `{node.name}`, which may change before the schedule",
                        related=((change.span, f"`{node.name}` may change here"),),
                    )
                    return None
        self._reporter.error("MF0312", extent.span, f"this extent of `{variable.name}` is not understood")
        return None

    def _reserved(self, names: Iterable[str]) -> frozenset[str]:
        """Return the names of the host that the program will mention if it mentions the given ones."""
        found: set[str] = set()
        pending = [name for name in names if name in self._site.visible]
        while pending:
            name = pending.pop()
            if name in found:
                continue
            found.add(name)
            variable = self._site.visible[name]
            for extent in variable.extents:
                pending += syntax.names_in(extent)
            pending += [] if variable.memory is None else syntax.names_in(variable.memory)
            if variable.followed:
                pending += [one.name for one in given_integers(self._host)]
            definition = self._values.definition(variable)
            if definition is not None:
                pending += [operand.name for operand in definition.operands]
            pending = [one for one in pending if one in self._site.visible]
        return frozenset(found)

    def _cache_clause(self, nest: Nest, undeclared: set[str]) -> tuple[str, ...] | None:
        clause = self._site.statement.cache
        if clause is None:
            return None
        for name in clause:
            if name.name not in nest.arrays and name.name not in undeclared:
                meant = similar(name.name, sorted(nest.arrays))
                hint = f"; did you mean `{meant}`?" if meant else ""
                self._reporter.error("MF0308", name.span, f"`{name.name}` is no array that this schedule uses{hint}")
                continue
            array = self._arrays.get(name.name)
            if array is not None and array.slots:
                self._reporter.error(
                    "MF0308",
                    name.span,
                    f"`{name.name}` has structures of several types",
                    reason="no schedule keeps those in shared memory: a copy of one member would hold parts of others.",
                    way_out="leave it out of the clause, or copy what is needed to an array of the block.",
                )
        return tuple(dict.fromkeys(name.name for name in clause))

    # --- the program ------------------------------------------------------------------------------------------

    def _assemble(self, name: str, function: str, nest: Nest, clause: tuple[str, ...] | None) -> ir.Program:
        visible = self._site.visible
        arrays = sorted((visible[one] for one in nest.arrays), key=_place)
        built = [array for variable in arrays if (array := self._array(variable)) is not None]
        views = Views({*visible, *names_in(nest.body)})
        built = [view for array in built for view in views.of_host(array)]
        body = views.body(nest.body)
        placed = self._constants.place(accessed(built, body), visible, self._host.typedefs, body, clause or ())
        program = ir.Program(
            name=name,
            function=function,
            parameters=(),
            values=(),
            derived=(),
            assumptions=(),
            arrays=(*placed.arrays, *self.parts),
            grid=nest.grid,
            body=body,
            mapping=Mapping(cached=clause or (), decided=clause is not None),
            tables=placed.tables,
            blocked=self._blocked,
            span=self._site.statement.span,
        )
        program = with_stored_bits(self._with_scalars(program, nest))
        followed = [one for one in arrays if one.followed]
        self.followed = self._followed(program, nest, followed) if followed else None
        return program

    def _with_scalars(self, program: ir.Program, nest: Nest, more: Collection[str] = ()) -> ir.Program:
        """Return a program with the scalars that it asks for, and some more, and what is asserted of them."""
        visible = self._site.visible
        extents = [extent for one in program.arrays if one not in self.parts for extent in one.extents]
        sizing = {part.name for extent in extents for part in variables_of(extent)}
        control = control_names(nest.grid, nest.body) & nest.scalars
        integers = {one for one in nest.scalars if (type_ := visible[one].type) is not None and type_.integer}
        roots, definitions = self._closure((control & integers) | sizing.union(more))
        data, _ = self._closure(sizing)
        assumptions = self._assumptions(roots, definitions)
        values = sorted((visible[one] for one in nest.scalars - roots - definitions.keys()), key=_place)
        derived = sorted(definitions.values(), key=lambda definition: definition.order)
        last = {name: number for number, name in enumerate(self._serial_variables(), 1)}
        parameters = (
            ir.Parameter(
                one.name,
                one.type or ScalarType.INT,
                ir.ParameterKind.DATA if one.name in data else ir.ParameterKind.PROGRAM,
                one.name in last,
                one.span,
            )
            for one in sorted((visible[name] for name in roots), key=lambda one: (last.get(one.name, 0), _place(one)))
        )
        return replace(
            program,
            parameters=tuple(parameters),
            values=tuple(ir.ValueArgument(one.name, one.type or ScalarType.INT, one.span) for one in values),
            derived=tuple(
                ir.Derived(one.variable.name, one.variable.type or ScalarType.INT, one.expression, one.variable.span)
                for one in derived
            ),
            assumptions=assumptions,
        )

    def _followed(self, program: ir.Program, nest: Nest, pointers: Sequence[Variable]) -> Followed:
        """Return what is said of pointers whose extents follow from accesses."""
        order, visible = self._site.order, self._site.visible
        given = {one.name: self._values.integer(one.memory, order, visible) for one in pointers if one.memory}
        memory = {name: found[0] for name, found in given.items() if found is not None}
        loops = whole_loops(self._host, self._site, [one.whole or one.name for one in program.arrays])
        changed, doubted = changed_before(self._host, self._site)
        named = {part.name for one in memory.values() for part in variables_of(one)}
        named |= {one.name for one in given_integers(self._host)} - changed.keys()
        wider = self._with_scalars(program, nest, named)
        names = tuple(one.name for one in pointers)
        return Followed(names, loops, memory, wider, self._exchanged, changed, doubted)

    def _closure(self, names: Iterable[str]) -> tuple[set[str], dict[str, Definition]]:
        """Return the parameters that integer scalars come from, and the derived scalars on the way."""
        roots: set[str] = set()
        definitions: dict[str, Definition] = {}
        pending = list(names)
        while pending:
            name = pending.pop()
            if name in roots or name in definitions:
                continue
            definition = self._values.definition(self._site.visible[name])
            if definition is None or any(operand.name in self._results for operand in definition.operands):
                roots.add(name)  # a result is an array, which defines no scalar
            else:
                definitions[name] = definition
                pending += [operand.name for operand in definition.operands]
        return roots, definitions

    def _assumptions(self, roots: set[str], definitions: dict[str, Definition]) -> tuple[ir.Expr, ...]:
        """Return what assertions say about the parameters; derived scalars that only they mention are added."""
        found: list[ir.Expr] = []
        said = [(one, at.order, at.scope) for one, at in self._host.assumptions(self._site)]
        own = () if self._functions is None else self._functions.names
        inside, self.left_out = facts_in(self._site.statement, own)
        for condition, order, scope in (*said, *((one, self._site.order, self._site.visible) for one in inside)):
            integer = self._values.integer(condition, order, scope)
            if integer is None or not integer[1]:
                self.left_out += [condition.span] if condition in inside else []
                continue
            needed, through = self._closure(variable.name for variable in integer[1])
            if needed <= roots:
                definitions.update(through)
                found.append(integer[0])
        for condition in self._conditions:
            found += self._condition(condition)
        return tuple(found)

    def _condition(self, condition: syntax.Expression) -> list[ir.Expr]:
        """Return a condition under which the nest is what was written; nothing where it always holds."""
        integer = self._values.integer(condition, self._site.order, self._site.visible)
        if integer is None or (not integer[1] and not integer_value(integer[0], {})):
            message = "it is not known whether an index is negative, or goes beyond its type where a block is not full"
            raise self._reporter.refuse("MF0105", condition.span, message)
        return [integer[0]] if integer[1] else []

    def _serial_variables(self) -> list[str]:
        names: list[str] = []
        for loop in self._site.loops:
            init = loop.init if isinstance(loop, syntax.ForStatement) else None
            if isinstance(init, syntax.Declaration):
                names += [declarator.name for declarator in init.declarators]
            elif isinstance(init, syntax.Assignment) and isinstance(init.target, syntax.Name):
                names.append(init.target.name)
        return names


def _place(variable: Variable) -> tuple[Span, str]:
    """Return where a variable is declared, and its name: members of one structure have one place."""
    return variable.span, variable.name
