"""Statements at block level and in threads: scalars, assignments, branches, serial loops.

The two levels differ in what they may touch: at block level nothing is written but the block's scalars, because every
thread runs it alike; in a thread nothing is written that its neighbours share, but elements of arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from metafork.frontend.schedules.expressions import ExpressionBuilder
from metafork.frontend.schedules.inlining.calls import Calls, is_still
from metafork.frontend.schedules.inlining.functions import Functions
from metafork.frontend.schedules.local_arrays import LocalArrays, number_of
from metafork.frontend.schedules.loop_steps import own_start, own_step
from metafork.frontend.schedules.moved_arrays import refuse_moved
from metafork.frontend.schedules.scopes import Scopes
from metafork.frontend.schedules.structure_parts import Whole, members_at, path_of, whole_of
from metafork.frontend.schedules.symbols import ArraySymbol, Origin, PointedSymbol, ScalarSymbol
from metafork.frontend.schedules.values.conversions import BITS, bits_of, converted, taken_for
from metafork.frontend.text import syntax
from metafork.frontend.text.clauses.atomics import atomic, with_old_value
from metafork.frontend.text.counted_braces import first_extent
from metafork.frontend.text.jumps import RETURNED, ReturnLowering, own_jumps
from metafork.frontend.text.reporter import RefusedError, Reporter
from metafork.frontend.text.structures import StructureType, TypeNames
from metafork.frontend.text.switches import is_plain
from metafork.ir import program as ir
from metafork.ir.arithmetic.evaluation import NoValueError, integer_value
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.atomic_updates import updated
from metafork.ir.messages.source import Span

MOST_COPIED = 256
"""Members of a structure that is copied as a whole."""


class Level(Struct):
    """Where a statement stands: at block level or in a thread, and how many serial loops are around it there."""

    origin: Origin
    serial_loops: int = 0


def first_word(span: Span, word: str) -> Span:
    """Return the span of the first word of a statement."""
    length = len(word)
    return Span(span.line, span.column, span.line, span.column + length, span.start, span.start + length)


def _addressed(expression: syntax.Expression) -> syntax.Expression | None:
    """Return what an address is that of."""
    match expression:
        case syntax.Conversion(operand=operand):
            return _addressed(operand)
        case syntax.Prefix(op="&", operand=operand):
            return operand
        case _:
            return None


def _base(target: syntax.Expression) -> str:
    """Return the name of the array of an element that was understood."""
    while not isinstance(target, syntax.Name):
        match target:
            case (
                syntax.Subscript(base=target)
                | syntax.Member(base=target)
                | syntax.Prefix(operand=target)
                | syntax.Infix(left=target)
            ):
                pass
            case _:
                raise AssertionError(target)
    return target.name


_SAYING = frozenset({"assert", "__builtin_assume", "__builtin_prefetch", "__builtin_unreachable"})
"""Calls that say something about a program, or ask for nothing that a kernel has; the serial code keeps them."""

_OPPOSITES = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


def _negated(test: ir.Expr) -> ir.Expr:
    """Return the opposite of a condition; of comparisons, integer ones only have one that is a comparison too."""
    match test:
        case ir.Binary(op=op, left=left, right=right) if op in _OPPOSITES and not (
            left.type.floating or right.type.floating
        ):
            return ir.binary(_OPPOSITES[op], left, right, test.span)
        case ir.Unary(op="!", operand=operand):
            return operand
        case _:
            return ir.unary("!", test, test.span)


def _leave_unless(test: ir.Expr) -> ir.Stmt:
    return ir.If(_negated(test), (ir.Break(test.span),), (), test.span)


class StatementBuilder:
    """Builds statements of ``metafork.ir.program``.

    ``phase`` builds a nest of thread loops that stands at block level.  ``shared`` are scalars that no iteration may
    write, ``reduced`` those of the block that a nest of threads adds up in, ``written`` the arrays that are written,
    ``uniform_reads`` the reads of arrays at block level.  Where numbers may be added up in any order (``reassociate``),
    atomic updates may do so.
    """

    def __init__(
        self,
        reporter: Reporter,
        typedefs: TypeNames,
        scopes: Scopes,
        phase: Callable[[syntax.ForStatement], tuple[ir.Stmt, ...]],
        functions: Functions | None = None,
        *,
        reassociate: bool = False,
    ) -> None:
        self._reporter = reporter
        self._scopes = scopes
        self._phase = phase
        self._reassociate = reassociate
        self.expressions = ExpressionBuilder(reporter, typedefs, scopes.resolve, scopes.visible)
        self._calls = Calls(reporter, scopes, self.expressions, functions, self._inlined)
        self.expressions.inline = self._calls.value
        self.expressions.inline_structure = self._calls.structure
        self.expressions.assignment = self._scalar_assignment
        self.expressions.fresh = scopes.fresh
        self.expressions.given = scopes.given
        self.expressions.literal = self._literal
        self.expressions.functions = [] if functions is None else functions.names
        self.shared: dict[str, Span] = {}
        self.reduced: set[str] = set()
        self.named_results: set[str] = set()
        self.written: set[str] = set()
        self.uniform_reads: list[ir.Element] = []

    def iteration(self, statement: syntax.Statement, level: Level) -> tuple[ir.Stmt, ...]:
        """Build the body of a ``meta_for``, which ``continue`` ends early."""
        if "continue" not in own_jumps(statement):
            return self.statements(statement, level)
        lowering = ReturnLowering(statement.span, "continue")
        items = lowering.body([statement])
        with self._scopes.scope():
            if not lowering.flagged:
                return self.statements(syntax.Block(items, statement.span), level)
            symbol = ScalarSymbol("", ir.INT, level.origin, statement.span)
            name = self._scopes.introduce(RETURNED, symbol, statement.span, "ended")
            flag = ir.Declare(name, ir.INT, ir.IntConst(0), statement.span)
            return (flag, *self.statements(syntax.Block(items, statement.span), level))

    def statements(self, statement: syntax.Statement, level: Level) -> tuple[ir.Stmt, ...]:
        """Build a statement with a scope of its own."""
        built: list[ir.Stmt] = []
        items = statement.items if isinstance(statement, syntax.Block) else (statement,)
        with self._scopes.scope():
            for item in items:
                try:
                    built.extend(self._statement(item, level))
                except RefusedError:
                    self.expressions.ahead.clear()
        return tuple(built)

    def _inlined(self, items: Sequence[syntax.Statement], origin: Origin) -> tuple[ir.Stmt, ...]:
        """Build statements of a function in its own scope; raises ``RefusedError``."""
        level = Level(origin)
        return tuple(statement for item in items for statement in self._statement(item, level))

    def _ahead(self, level: Level) -> tuple[ir.Stmt, ...]:
        """Return what must be done before the expressions that were built, and forget it."""
        ahead = tuple(self.expressions.ahead)
        self.expressions.ahead.clear()
        for statement in ir.walk_statements(ahead):
            for expression in ir.expressions_of(statement):
                self._note(expression, level)
        return ahead

    def _statement(self, statement: syntax.Statement, level: Level) -> tuple[ir.Stmt, ...]:
        match statement:
            case syntax.Block():
                return self.statements(statement, level)
            case syntax.Declaration():
                return self.declare(statement, level)
            case syntax.ExpressionStatement(expression=expression, span=span, atomic=atomic):
                built = self._effect(expression, span, level)
                return self._atomic(built, span) if atomic else built
            case syntax.IfStatement(condition=condition, then=then, otherwise=otherwise, span=span):
                test = self._condition(condition, level)
                ahead = self._ahead(level)
                yes = self.statements(then, level)
                no = () if otherwise is None else self.statements(otherwise, level)
                if test is not None and not yes and no:
                    test, yes, no = _negated(test), no, ()
                return () if test is None else (*ahead, ir.If(test, yes, no, span))
            case syntax.ForStatement(meta=True):
                if level.origin is not Origin.BLOCK:
                    raise self._reporter.refuse(
                        "MF0106", statement.head, "a `meta_for` stands inside the code of a thread"
                    )
                return self._phase(statement)
            case syntax.ForStatement():
                return self._for(statement, level)
            case syntax.WhileStatement(is_do=True):
                return self._do(statement, level)
            case syntax.WhileStatement(condition=condition, body=body, span=span):
                return self._while(condition, body, span, level)
            case syntax.Jump(word=word, span=span):
                return self._jump(word, span, level)
            case syntax.SwitchStatement():
                raise self._no_branches(statement)
            case syntax.LabelledStatement(label=label, span=span):
                raise self._reporter.refuse("MF0204", first_word(span, label), "a label stands in a schedule")
            case syntax.Opaque(tokens=tokens):
                self._scopes.give_up_unknown(tokens)
                return ()  # reported where it was parsed
            case syntax.Empty() | syntax.ScheduleStatement():
                return ()  # nothing, or reported where it was parsed

    def _no_branches(self, switch: syntax.SwitchStatement) -> RefusedError:
        """Refuse a ``switch`` that is no chain of branches."""
        message, way_out = "labels of this `switch` stand within statements, or declare what others use", None
        if not is_plain(switch.value):
            value = self._reporter.written(switch.value.span).removeprefix("(").removesuffix(")")
            message = "the value of this `switch` calls a function, or has another effect"
            way_out = f"give it a variable: `int chosen = {value};`, and then `switch (chosen)`."
        return self._reporter.refuse("MF0211", first_word(switch.span, "switch"), message, way_out=way_out)

    def _condition(self, condition: syntax.Expression, level: Level) -> ir.Expr | None:
        try:
            self._calls.alone = self._calls.apart_in_condition(condition)
            return self._value(condition, level, condition=True)
        except RefusedError:
            return None
        finally:
            self._calls.alone = None

    def _while(
        self, condition: syntax.Expression, body: syntax.Statement, span: Span, level: Level
    ) -> tuple[ir.Stmt, ...]:
        test = self._condition(condition, level)
        ahead = self._ahead(level)
        inner = self.statements(body, Level(level.origin, level.serial_loops + 1))
        if test is None:
            return ()
        if ahead:
            return (ir.While(ir.IntConst(1), (*ahead, _leave_unless(test), *inner), span),)
        return (ir.While(test, inner, span),)

    def _do(self, loop: syntax.WhileStatement, level: Level) -> tuple[ir.Stmt, ...]:
        """Build ``do body while (test)``: ``while (1) { body; if (!test) break; }``, or what ``continue`` asks for."""
        span = loop.span
        inner = self.statements(loop.body, Level(level.origin, level.serial_loops + 1))
        test = self._condition(loop.condition, level)
        if test is None:
            return ()
        ahead = self._ahead(level)
        jumps = own_jumps(loop.body)
        if not jumps and not ahead and isinstance(test, ir.IntConst) and test.value == 0:
            return inner
        if "continue" not in jumps:
            return (ir.While(ir.IntConst(1), (*inner, *ahead, _leave_unless(test)), span),)
        first = ir.Var(self._scopes.fresh("first"), ir.INT, span)
        body = (ir.If(_negated(first), (*ahead, _leave_unless(test)), (), span), *inner)
        init, step = ir.Declare(first.name, ir.INT, ir.IntConst(1), span), ir.Assign(first, "", ir.IntConst(0), span)
        if not ahead:
            return (ir.For(init, ir.binary("||", first, test, span), step, inner, span),)
        return (ir.For(init, None, step, body, span),)

    def _for(self, loop: syntax.ForStatement, level: Level) -> tuple[ir.Stmt, ...]:
        with self._scopes.scope():
            ahead: tuple[ir.Stmt, ...] = ()
            fault = False
            try:
                if isinstance(loop.init, syntax.Unsupported):
                    self._scopes.give_up_unknown(loop.init.tokens)
                if isinstance(loop.init, syntax.Declaration):
                    ahead = self.declare(loop.init, level)
                elif loop.init is not None:
                    ahead = self._effect(loop.init, loop.init.span, level)
            except RefusedError:
                fault = True
            test = None if loop.condition is None else self._condition(loop.condition, level)
            every = self._ahead(level)
            steps: list[ir.Assign] = []
            if loop.step is not None:
                try:
                    items = loop.step.items if isinstance(loop.step, syntax.Comma) else (loop.step,)
                    steps += [self._step(item, level) for item in items]
                except RefusedError:
                    fault = True
            inside = Level(level.origin, level.serial_loops + 1)
            body = (self.iteration if len(steps) > 1 else self.statements)(loop.body, inside)
        if fault or (test is None and loop.condition is not None):
            return ()
        if every and test is not None:
            body = (*every, _leave_unless(test), *body)
            test = None
        before, init = own_start(ahead, steps)
        step: ir.Assign | None = None
        if steps:
            others, step = own_step(steps, init.name if isinstance(init, ir.Declare) else "")
            body = (*body, *others)
        return (*before, ir.For(init, test, step, body, loop.span))

    def _step(self, step: syntax.Expression, level: Level) -> ir.Assign:
        effects = self._effect(step, step.span, level)
        built = effects[0] if len(effects) == 1 else None
        if not isinstance(built, ir.Assign):
            message = "this step is no single assignment once functions are put in line"
            raise self._reporter.refuse("MF0223", step.span, message, way_out="call it in the body of the loop.")
        return built

    def _jump(self, word: str, span: Span, level: Level) -> tuple[ir.Stmt, ...]:
        match word:
            case "goto":
                raise self._reporter.refuse("MF0204", span, "a `goto` stands in a schedule")
            case "return":
                raise self._reporter.refuse("MF0212", span, "a `return` stands in a schedule")
            case _ if not level.serial_loops:
                raise self._reporter.refuse("MF0111", span, f"this `{word}` would leave a `meta_for`")
            case "break":
                return (ir.Break(span),)
            case _:
                return (ir.Continue(span),)

    # --- declarations -----------------------------------------------------------------------------------------

    def declare(self, declaration: syntax.Declaration, level: Level) -> tuple[ir.Stmt, ...]:
        """Build a declaration in the innermost scope; raises ``RefusedError``."""
        if not declaration.declarators:
            raise self._reporter.refuse("MF0205", declaration.span, "a structure is declared in a schedule")
        built: list[ir.Stmt] = []
        for declarator in declaration.declarators:
            try:
                built += self._declarator(declarator, level)
            except RefusedError:
                self.expressions.ahead.clear()
                # The name is known from here on, so that its uses are not reported as well.
                self._scopes.give_up(declarator.name, declarator.name_span)
        return tuple(built)

    def _refuse_allocation(self, declarator: syntax.Declarator) -> None:
        """Refuse a pointer to memory that a function of C's library gives."""
        from metafork.frontend.text.other_languages.calls import allocated  # most files have none

        value = declarator.value.operand if isinstance(declarator.value, syntax.Conversion) else declarator.value
        if isinstance(value, syntax.Invocation) and isinstance(value.callee, syntax.Name):
            texts = [self._reporter.written(one.span) for one in value.arguments]
            element = " ".join(declarator.type.words)
            advice = allocated(declarator.name, element, value.callee.name, texts)
            if advice is not None:
                raise self._reporter.advise("MF0206", value.callee.span, advice)

    def _declarator(self, declarator: syntax.Declarator, level: Level) -> tuple[ir.Stmt, ...]:
        declarator = replace(declarator, type=self.expressions.spelled_out(declarator.type))
        type_, name, span = declarator.type, declarator.name, declarator.span
        if "typedef" in type_.storage:
            raise self._reporter.refuse("MF0220", span, "a type is defined in a schedule")
        if type_.function:
            raise self._reporter.refuse("MF0220", span, f"the function `{name}` is declared in a schedule")
        if type_.pointers:
            self._refuse_allocation(declarator)
            way_out = (
                "initialise it with a place in an array of its type, and change neither; or write the elements out."
            )
            if isinstance(declarator.value, syntax.Conversion) and isinstance(declarator.value.operand, syntax.Name):
                element, led = " ".join(type_.words), declarator.value.operand.name
                way_out = f"declare `{led}` as what it leads to, `{element} *{led}`, and use it in place of `{name}`."
            raise self._reporter.refuse("MF0201", span, f"`{name}` is a pointer", way_out=way_out)
        words = (type_.storage & {"static", "extern", "_Thread_local"}) | (type_.qualifiers & {"volatile", "_Atomic"})
        if "const" in type_.qualifiers and declarator.value is not None:
            words -= {"static"}  # C asks for constants, and nothing changes them
        if words:
            raise self._reporter.refuse("MF0217", span, f"`{name}` is declared `{min(words)}` in a schedule")
        members = self.expressions.unions.of_type(type_)
        if members is not None and not type_.extents:
            return self._union(declarator, members, level)
        structure = self.expressions.structure_type(type_)
        if structure is not None:
            return self._structure(declarator, structure, level)
        scalar = self.expressions.named_type(
            syntax.TypeName(type_.words, type_.qualifiers, type_.storage, (), 0, False, type_.span)
        )
        if type_.extents:
            arrays = LocalArrays(self._reporter, self._scopes, self.extent, lambda item: self._value(item, level))
            if level.origin is Origin.BLOCK:
                return (arrays.of_block(declarator, scalar),)
            array, values = arrays.of_thread(declarator, scalar)
            return (array, *self._ahead(level), *values)
        symbol = ScalarSymbol("", scalar, level.origin, declarator.name_span, "const" in type_.qualifiers)
        unique = self._scopes.introduce(name, symbol, declarator.name_span)
        before: tuple[ir.Stmt, ...] = ()
        initial = declarator.value
        if isinstance(initial, syntax.Assignment) and is_still(initial.target):
            before, initial = self._effect(initial, initial.span, level), initial.target
        self._calls.alone = None if initial is None else self._calls.apart(initial)
        value = None if initial is None else self._value(initial, level)
        number = None if value is None or not symbol.const else number_of(value, scalar)
        if number is not None:
            self._scopes.settle(name, number)
        return (*before, *self._ahead(level), ir.Declare(unique, scalar, value, span))

    def _literal(self, literal: syntax.Literal) -> ArraySymbol:
        """Return the array that ``(float[]){1, 2}`` is: one of the thread, filled ahead of the expression."""
        level = Level(self._calls.origin)
        type_, span = literal.type, literal.span
        if level.origin is Origin.BLOCK:
            message = f"{syntax.COMPOUND_LITERAL} of an array stands between grid and threads"
            raise self._reporter.refuse("MF0218", span, message, way_out="write it in the code of the threads.")
        if type_.extents[0] is None:
            inner = type_.extents[1:]
            type_ = replace(type_, extents=(first_extent(literal.braces, inner, span), *inner))
        element = self.expressions.named_type(replace(type_, extents=()))
        name = self._scopes.fresh("literal")
        declarator = syntax.Declarator(name, type_, literal, span, span, literal.braces)
        arrays = LocalArrays(self._reporter, self._scopes, self.extent, lambda item: self._value(item, level))
        array, values = arrays.of_thread(declarator, element)
        self.expressions.ahead += [array, *values]
        found = self._scopes.resolve(name)
        assert isinstance(found, ArraySymbol)
        return found

    def _union(
        self, declarator: syntax.Declarator, members: Mapping[str, ScalarType], level: Level
    ) -> tuple[ir.Stmt, ...]:
        """Declare a union: the integer that its bits are."""
        bits = BITS[next(iter(members.values())).size]
        given = declarator.braces or declarator.value
        value = None if given is None else self.expressions.unions.value(given, members)
        const = "const" in declarator.type.qualifiers
        symbol = ScalarSymbol("", bits, level.origin, declarator.name_span, const, members=members)
        unique = self._scopes.introduce(declarator.name, symbol, declarator.name_span)
        return (*self._ahead(level), ir.Declare(unique, bits, value, declarator.span))

    def _structure(self, declarator: syntax.Declarator, structure: StructureType, level: Level) -> tuple[ir.Stmt, ...]:
        """Declare a structure, or an array of them: scalars of one type, the members being the last index."""
        type_, span = declarator.type, declarator.span
        single = not type_.extents
        if single and level.origin is Origin.BLOCK:
            message = f"the structure `{declarator.name}` is declared between grid and threads"
            way_out = "declare it in the code of the threads, or an array of structures, which belongs to the block."
            raise self._reporter.refuse("MF0205", span, message, way_out=way_out)
        first = (syntax.Constant("1", span),) if single else ()
        extents = (*first, *type_.extents, syntax.Constant(str(len(structure.members)), span))
        value = declarator.value if single and declarator.braces is None else None
        flat = replace(declarator, type=replace(type_, extents=extents))
        if value is not None:
            flat = replace(flat, value=None)
        assert structure.element is not None
        arrays = LocalArrays(self._reporter, self._scopes, self.extent, lambda item: self._value(item, level))
        if level.origin is Origin.BLOCK:
            built: tuple[ir.Stmt, ...] = (arrays.of_block(flat, structure.element, structure.slots),)
        else:

            def items(braces: syntax.Braces, extents: tuple[int, ...]) -> dict[int, syntax.Expression | ir.Expr]:
                around = () if single else extents[:-1]
                return dict(self.expressions.structure_items(braces, structure.members, around, span))

            array, values = arrays.of_thread(flat, structure.element, structure.slots, items)
            built = (array, *self._ahead(level), *values)
        self._scopes.name_members(declarator.name, structure.members, single=single)
        if value is None:
            return built
        target = self._scopes.resolve(declarator.name)
        assert isinstance(target, ArraySymbol)
        return (*built, *self._copied(whole_of(target, span), value, span, level))

    def _copied(self, target: Whole, value: syntax.Expression, span: Span, level: Level) -> tuple[ir.Stmt, ...]:
        """Assign a structure, member by member."""
        self._calls.origin = level.origin
        if len(target.names) > MOST_COPIED:
            message = f"a structure with {len(target.names)} members is copied"
            way_out = "copy the members that are needed."
            raise self._reporter.refuse("MF0205", span, message, way_out=way_out)
        self._calls.alone = value if isinstance(value, syntax.Invocation) else None
        source = self.expressions.whole(value)
        if source is None:
            self.expressions.no_structure(value)
        if source is None or not source.alike(target):
            raise self._reporter.refuse("MF0205", value.span, "this is no structure of the type that it is assigned to")
        built: list[ir.Stmt] = []
        for to, of in zip(target.values, source.values, strict=True):
            self._note(of, level)
            assert isinstance(to, ir.Element)
            built.append(ir.Assign(to, "", of, span))
        return (*self._ahead(level), *built)

    # --- effects ----------------------------------------------------------------------------------------------

    def _effect(self, expression: syntax.Expression, span: Span, level: Level) -> tuple[ir.Stmt, ...]:
        """Build what an expression statement does: assignments, ``++`` and ``--``."""
        refuse_moved(self._reporter, self._scopes.resolve, expression)
        match expression:
            case syntax.Assignment(op=op, target=target, value=value):
                return self._assign(target, op.removesuffix("="), value, span, level)
            case (
                syntax.Postfix(op="++" | "--" as op, operand=target)
                | syntax.Prefix(op="++" | "--" as op, operand=target)
            ):
                return self._assign(target, op[0], syntax.Constant("1", expression.span), span, level)
            case syntax.Comma(items=items):
                return tuple(statement for item in items for statement in self._effect(item, item.span, level))
            case syntax.Conversion(type=syntax.TypeName(words=("void",), pointers=0), operand=operand):
                return self._ahead(level) if self._called(operand, level) else ()
            case syntax.Invocation(callee=syntax.Name(name=name)) if name in _SAYING and not self._is_own(name):
                return ()
            case syntax.Invocation(callee=syntax.Name(name="memcpy" | "memset" as name), arguments=(to, of, size)) if (
                not self._is_own(name) and (filled := self._filled(name, to, of, size, span, level)) is not None
            ):
                return filled
            case syntax.Invocation(callee=syntax.Name(name="memcpy"), arguments=(to, of, size)):
                return self._bits(expression, to, of, size, level)
            case _:
                if self._called(expression, level):
                    return self._ahead(level)
                self._value(expression, level)
                raise self._reporter.refuse("MF0219", span, "this statement has no effect")

    def _is_own(self, name: str) -> bool:
        """Say whether a name is that of a function or a variable of the file."""
        return name in self.expressions.functions or self._scopes.resolve(name) is not None

    def _filled(
        self,
        name: str,
        to: syntax.Expression,
        of: syntax.Expression,
        size: syntax.Expression,
        span: Span,
        level: Level,
    ) -> tuple[ir.Stmt, ...] | None:
        """Build ``memset(a, 0, bytes)`` and ``memcpy(a, b, bytes)`` of arrays: loops over elements.

        Returns ``None`` where these are no arrays of numbers, or the number of elements does not show.
        """
        target = self._array_given(to)
        source = None if name == "memset" else self._array_given(of)
        zero = isinstance(of, syntax.Constant) and of.text in ("0", "0x0", "'\\0'")
        alike = (
            zero
            if name == "memset"
            else source is not None
            and target is not None
            and (source.array.element is target.array.element and len(source.extents) == 1)
        )
        if target is None or not alike:
            return None
        extents = self._elements_in(size, target, level)
        if extents is None or (source is not None and len(extents) > 1):
            return None
        counters = tuple(ir.Var(self._scopes.fresh("k"), extent.type, span) for extent in extents)
        value: ir.Expr = ir.IntConst(0, span=span)
        if source is not None:
            value = ir.Element(source.array.name, source.indices(counters), source.array.element, span)
            self._note(value, level)
        self._check_element_write(target, to.span, level)
        place = ir.Element(target.array.name, target.indices(counters), target.array.element, span)
        body: ir.Stmt = ir.Assign(place, "", value, span)
        for counter, extent in reversed([*zip(counters, extents, strict=True)]):
            first = ir.Declare(counter.name, counter.type, ir.IntConst(0), span)
            step = ir.Assign(counter, "+", ir.IntConst(1), span)
            body = ir.For(first, ir.binary("<", counter, extent, span), step, (body,), span)
        return (*self._ahead(level), body)

    def _array_given(self, expression: syntax.Expression) -> ArraySymbol | None:
        """Return the array of numbers, or the part of one, that an argument is."""
        while isinstance(expression, syntax.Conversion) and expression.type.pointers:
            expression = expression.operand
        if not self._is_array(expression):
            return None
        found = self.expressions.part(expression)
        return None if found is None or found.members or found.array.scalar or found.array.slots else found

    def _is_array(self, expression: syntax.Expression) -> bool:
        """Say whether an argument is made of an array's name, and not of a scalar's."""
        while not isinstance(expression, syntax.Name):
            match expression:
                case (
                    syntax.Subscript(base=expression)
                    | syntax.Infix(op="+", left=expression)
                    | syntax.Prefix(op="&", operand=syntax.Subscript() as expression)
                ):
                    pass
                case _:
                    return False
        return isinstance(self._scopes.resolve(expression.name), ArraySymbol)

    def _elements_in(self, size: syntax.Expression, array: ArraySymbol, level: Level) -> tuple[ir.Expr, ...] | None:
        """Return how many elements, by extents, a number of bytes is: ``sizeof a``, ``n * sizeof(float)``."""
        element = array.array.element.size
        match size:
            case syntax.Prefix(op="sizeof", operand=syntax.Name(name=name)) if (
                self._scopes.resolve(name) == array and not array.pointer
            ):
                return array.extents
            case syntax.Infix(op="*", left=count, right=syntax.SizeOfType() | syntax.Prefix(op="sizeof") as bytes_):
                pass
            case syntax.Infix(op="*", left=syntax.SizeOfType() | syntax.Prefix(op="sizeof") as bytes_, right=count):
                pass
            case _:
                return None
        each = self._value(bytes_, level)
        if len(array.extents) != 1 or not isinstance(each, ir.IntConst) or each.value != element:
            return None
        return (self._value(count, level),)

    def _bits(
        self,
        call: syntax.Expression,
        to: syntax.Expression,
        of: syntax.Expression,
        size: syntax.Expression,
        level: Level,
    ) -> tuple[ir.Stmt, ...]:
        """Build ``memcpy(&u, &x, sizeof u)``: the bits of one number as those of another one."""
        target, source = _addressed(to), _addressed(of)
        if target is None or source is None or self._of_structures(target) or self._of_structures(source):
            return self._not_bits(call)
        value = self._value(source, level)
        bytes_ = self._value(size, level)
        place = self._target(target, level)
        given = ir.Cast(ScalarType.LONG, bytes_)
        try:
            many = integer_value(given, {})
        except NoValueError:
            return self._not_bits(call)
        if not place.type.size == value.type.size == many:
            return self._not_bits(call)
        if value.type.floating != place.type.floating or (value.type.small and value.type is not place.type):
            value = taken_for(bits_of(value), place.type)
        return (*self._ahead(level), ir.Assign(place, "", converted(value, place.type), call.span))

    def _not_bits(self, call: syntax.Expression) -> tuple[ir.Stmt, ...]:
        raise self._reporter.refuse(
            "MF0206",
            call.span,
            "`memcpy` copies something else here than one number to another one of its size",
            way_out="assign elements one by one; of numbers write `memcpy(&u, &x, sizeof u);`.",
        )

    def _assign(
        self, target: syntax.Expression, op: str, value: syntax.Expression, span: Span, level: Level
    ) -> tuple[ir.Stmt, ...]:
        member, union = self.expressions.unions.member(target), self.expressions.unions.bits_of(target)
        if member is not None and isinstance(target, syntax.Member):
            given = self._value(value if not op else syntax.Infix(op, target, value, span), level)
            bits = self._target(target.base, level)
            return (*self._ahead(level), ir.Assign(bits, "", bits_of(converted(given, member[1])), span))
        if union is not None and not op:
            given = self.expressions.unions.value(value, union[1])
            return (*self._ahead(level), ir.Assign(self._target(target, level), "", given, span))
        whole = self.expressions.structure(target) if not op and self._of_structures(target) else None
        if whole is not None:
            self._check_element_write(whole, target.span, level)
            return self._copied(whole_of(whole, target.span), value, span, level)
        part = None if op else self._inner_structure(target, level)
        if part is not None:
            return self._copied(part, value, span, level)
        if isinstance(value, syntax.Assignment):
            return self._chained(target, op, value, span, level)
        built: ir.Var | ir.Element | None = None
        with suppress(RefusedError):
            built = self._target(target, level)
        self._calls.alone = self._calls.apart(value, target, updated=bool(op))
        right = self._value(value, level)
        if built is None:
            raise RefusedError
        if op in ("%", "&", "|", "^", "<<", ">>"):
            self.expressions.require_integers(f"{op}=", (built, right), span)
        return (*self._ahead(level), ir.Assign(built, op, right, span))

    def _chained(
        self, target: syntax.Expression, op: str, value: syntax.Assignment, span: Span, level: Level
    ) -> tuple[ir.Stmt, ...]:
        """Build ``a = b = e``: the value of an assignment is that of its target, in the target's type."""
        if self._of_structures(value.target):
            raise self._reporter.refuse("MF0213", value.span, "an assignment of a structure stands inside another")
        *ahead, last = self._effect(value, value.span, level)
        assert isinstance(last, ir.Assign)
        source: ir.Expr = last.target
        done: tuple[ir.Stmt, ...] = (last,)
        if isinstance(last.target, ir.Element):
            source = ir.Var(self._scopes.fresh("value"), last.target.type, value.span)
            kept = ir.Declare(source.name, source.type, updated(last), value.span)
            done = (kept, replace(last, op="", value=source))
        built = self._target(target, level)
        if op in ("%", "&", "|", "^", "<<", ">>"):
            self.expressions.require_integers(f"{op}=", (built, source), span)
        return (*ahead, *done, *self._ahead(level), ir.Assign(built, op, source, span))

    def _scalar_assignment(self, expression: syntax.Expression) -> ir.Assign | None:
        """Build an assignment inside an expression; ``None`` where its target is no scalar of the schedule."""
        match expression:
            case syntax.Assignment(op=op, target=target, value=value):
                op = op.removesuffix("=")
            case syntax.Prefix(op=op, operand=target, span=span) | syntax.Postfix(op=op, operand=target, span=span):
                op, value = op[0], syntax.Constant("1", span)
            case _:
                raise AssertionError(expression)
        if not isinstance(target, syntax.Name) or not isinstance(self._scopes.resolve(target.name), ScalarSymbol):
            return None
        level = Level(self._calls.origin)
        right = self._value(value, level)
        built = self._target(target, level)
        assert isinstance(built, ir.Var)
        if op in ("%", "&", "|", "^", "<<", ">>"):
            self.expressions.require_integers(f"{op}=", (built, right), expression.span)
        return ir.Assign(built, op, right, expression.span)

    def _of_structures(self, target: syntax.Expression) -> bool:
        """Return whether a target that is no member names an array of structures."""
        while not isinstance(target, syntax.Name):
            match target:
                case syntax.Subscript(base=target) | syntax.Prefix(operand=target) | syntax.Infix(left=target):
                    pass
                case _:
                    return False
        with suppress(RefusedError):
            symbol = self._scopes.resolve(target.name)
            return isinstance(symbol, ArraySymbol) and bool(symbol.members)
        return False

    def _inner_structure(self, target: syntax.Expression, level: Level) -> Whole | None:
        """Return a structure in another one that is assigned to, ``None`` for any other target."""
        found = path_of(target)
        owner = None if found is None else self.expressions.structure(found[0])
        if found is None or owner is None:
            return None
        begun = [parts for _, parts in members_at(owner.members, found[1])]
        if not begun or any(len(parts) == len(found[1]) for parts in begun):
            return None
        self._check_element_write(owner, target.span, level)
        return self.expressions.members(target)

    def _atomic(self, built: tuple[ir.Stmt, ...], span: Span) -> tuple[ir.Stmt, ...]:
        """Make the last of some statements, the effect of one that is marked so, an atomic update."""
        *ahead, last = with_old_value(built)
        own = False
        if isinstance(last, ir.Assign) and isinstance(last.target, ir.Element):
            own = self._scopes.array(last.target.array).of_thread
        return (*ahead, atomic(last, own, self._reassociate, span, self._reporter))

    def _called(self, expression: syntax.Expression, level: Level) -> bool:
        """Put a call in line that is a statement of its own; return false for any other expression."""
        self._calls.origin = level.origin
        return self._calls.effect(expression)

    def _target(self, target: syntax.Expression, level: Level) -> ir.Var | ir.Element:
        self._calls.origin = level.origin
        if isinstance(target, syntax.Subscript) or (isinstance(target, syntax.Prefix) and target.op == "*"):
            element = self.expressions.element(target)
            symbol = self._scopes.resolve(_base(target))
            if isinstance(element, ir.Var) and isinstance(symbol, PointedSymbol):
                if symbol.const:
                    raise self._reporter.refuse("MF0305", target.span, "what this points to is `const`")
                self._check_write(syntax.Name(element.name, target.span), element, level)
                return element
            assert isinstance(element, ir.Element)
            assert isinstance(symbol, ArraySymbol)
            self._note(element, level, reads=False)
            self._check_element_write(symbol, target.span, level)
            return element
        if isinstance(target, syntax.Member):
            member = self.expressions.member(target)
            path = path_of(target)
            owner = None if path is None else self.expressions.structure(path[0])
            symbol = None if owner is None else self._scopes.resolve(_base(target))
            if not isinstance(member, ir.Element) or not isinstance(symbol, ArraySymbol):
                raise self._reporter.refuse("MF0311", target.span, "a member of a value cannot be assigned")
            element = member
            self._note(element, level, reads=False)
            self._check_element_write(symbol, target.span, level)
            return element
        if not isinstance(target, syntax.Name):
            self.expressions.build(target)  # reports pointers and structures by their own codes
            raise self._reporter.refuse("MF0311", target.span, "this cannot be assigned")
        symbol = self._scopes.resolve(target.name)
        if isinstance(symbol, ScalarSymbol) and symbol.number is not None:
            self._check_write(target, ir.Var(symbol.name, symbol.type, target.span), level)
        found = self.expressions.build(target)
        if isinstance(found, ir.Element) and isinstance(symbol, ArraySymbol):
            self._note(found, level, reads=False)
            self._check_element_write(symbol, target.span, level)
            return found
        if not isinstance(found, ir.Var):
            raise self._reporter.refuse("MF0311", target.span, "a constant cannot be assigned")
        self._check_write(target, found, level)
        return found

    def _check_element_write(self, symbol: ArraySymbol, span: Span, level: Level) -> None:
        name = symbol.array.name
        if symbol.const:
            message = f"the array `{name}` is `const`"
            raise self._reporter.refuse("MF0305", span, message, related=((symbol.array.span, "declared here"),))
        if level.origin is Origin.BLOCK:
            raise self._reporter.refuse("MF0108", span, f"`{name}` is written at block level")
        self.written.add(name)

    def _check_write(self, target: syntax.Name, found: ir.Var, level: Level) -> None:
        symbol = self._scopes.local(found.name)
        if symbol is None:
            if target.name in self.named_results:
                raise RefusedError  # what the clause that names it says is reported
            host = self._scopes.resolve(target.name)
            related = ((host.span, "declared here"),) if isinstance(host, ScalarSymbol) else ()
            message = f"`{target.name}` is declared outside the schedule and written in it"
            raise self._reporter.refuse("MF0304", target.span, message, related=related)
        related = ((symbol.span, "declared here"),)
        if symbol.const:
            raise self._reporter.refuse("MF0305", target.span, f"`{target.name}` is `const`", related=related)
        if symbol.origin in (Origin.GRID_INDEX, Origin.THREAD_INDEX):
            message = f"`{target.name}` is the variable of a `meta_for`"
            raise self._reporter.refuse("MF0113", target.span, message, related=related)
        if found.name in self.reduced:
            return
        if found.name in self.shared or (symbol.origin is Origin.BLOCK and level.origin is Origin.THREAD):
            message = f"`{target.name}` is shared by the iterations that write it here"
            raise self._reporter.refuse("MF0109", target.span, message, related=related)

    def _value(self, expression: syntax.Expression, level: Level, condition: bool = False) -> ir.Expr:
        self._calls.origin = level.origin
        built = self.expressions.condition(expression) if condition else self.expressions.build(expression)
        self._note(built, level)
        return built

    def _note(self, expression: ir.Expr, level: Level, reads: bool = True) -> None:
        """Note the arrays that an expression reads at block level."""
        if level.origin is Origin.BLOCK:
            for part in ir.walk_expression(expression):
                if isinstance(part, ir.Element) and (reads or part is not expression):
                    self.uniform_reads.append(part)

    def check_uniform_reads(self) -> None:
        """Refuse reads at block level of what the schedule writes; to be called when all statements are built."""
        for read in self.uniform_reads:
            if read.array in self.written and not self._scopes.is_of_block(read.array):
                self._reporter.error(
                    "MF0110", read.span, f"`{read.array}` is read at block level and written in the same schedule"
                )

    def extent(self, expression: syntax.Expression) -> ir.Expr:
        """Build an extent: an integer expression over parameters."""
        extent = self.expressions.build(expression)
        if self.expressions.ahead:
            self.expressions.ahead.clear()
            message = "this extent calls a function that does more than return a value of small arguments"
            raise self._reporter.refuse("MF0105", expression.span, message)
        for part in ir.walk_expression(extent):
            if isinstance(part, ir.Element):
                raise self._reporter.refuse("MF0105", part.span, f"this extent reads the array `{part.array}`")
            if isinstance(part, ir.Call):
                raise self._reporter.refuse("MF0105", part.span, f"this extent calls `{part.name}`")
            if isinstance(part, ir.Var) and (symbol := self._scopes.local(part.name)) is not None:
                message = f"this extent depends on `{part.name}`, a variable of {symbol.origin.value}"
                raise self._reporter.refuse("MF0105", part.span, message, related=((symbol.span, "declared here"),))
        if extent.type.floating:
            message = f"this extent has type `{extent.type.spelling}`"
            raise self._reporter.refuse("MF0104", expression.span, message)
        return extent
