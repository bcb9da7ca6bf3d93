"""Statements at block level and in threads: declarations, branches, serial loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from metafork.frontend.schedules.effects import Effects
from metafork.frontend.schedules.inlining.bodies import is_still
from metafork.frontend.schedules.inlining.functions import Functions
from metafork.frontend.schedules.local_arrays import LocalArrays, number_of
from metafork.frontend.schedules.loop_steps import own_start, own_step
from metafork.frontend.schedules.scopes import Scopes
from metafork.frontend.schedules.structure_parts import whole_of
from metafork.frontend.schedules.symbols import ArraySymbol, Origin, ScalarSymbol
from metafork.frontend.schedules.targets import Level
from metafork.frontend.schedules.values.conversions import BITS
from metafork.frontend.text import syntax
from metafork.frontend.text.clauses.atomics import atomic, with_old_value
from metafork.frontend.text.counted_braces import first_extent
from metafork.frontend.text.jumps import RETURNED, ReturnLowering, own_jumps
from metafork.frontend.text.reporter import RefusedError, Reporter
from metafork.frontend.text.structures import StructureType, TypeNames
from metafork.frontend.text.switches import is_plain
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Span


def first_word(span: Span, word: str) -> Span:
    """Return the span of the first word of a statement."""
    length = len(word)
    return Span(span.line, span.column, span.line, span.column + length, span.start, span.start + length)


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


class StatementBuilder(Effects):
    """Builds statements of ``metafork.ir.program``.

    ``phase`` builds a nest of thread loops that stands at block level.  Where numbers may be added up in any order
    (``reassociate``), atomic updates may do so.
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
        super().__init__(reporter, typedefs, scopes, functions, self._inlined)
        self._phase = phase
        self._reassociate = reassociate
        self.expressions.assignment = self._scalar_assignment
        self.expressions.literal = self._literal

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

    def _atomic(self, built: tuple[ir.Stmt, ...], span: Span) -> tuple[ir.Stmt, ...]:
        """Make the last of some statements, the effect of one that is marked so, an atomic update."""
        *ahead, last = with_old_value(built)
        own = False
        if isinstance(last, ir.Assign) and isinstance(last.target, ir.Element):
            own = self._scopes.array(last.target.array).of_thread
        return (*ahead, atomic(last, own, self._reassociate, span, self._reporter))
