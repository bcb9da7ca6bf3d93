"""The whole way from a MetaFork text to decision trees: ``metafork.optimize`` (DESIGN sections 1 and 6).

Text, programs and facts come from ``metafork``; counters and strategies by name from the registry; each schedule's case
discussion becomes a ``ScheduleTree``.  ``Result`` carries them with the texts that are made of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from msgspec import structs

from metafork.analysis.analyses import NVIDIA, Analyses, Hardware
from metafork.analysis.exactness import exact_unit
from metafork.analysis.extents.host_walk import host_walk
from metafork.analysis.races.diagnostics import check_races
from metafork.comprehensive import registry
from metafork.comprehensive.case_discussion.discussion import Discussion
from metafork.comprehensive.case_discussion.order import ByCost
from metafork.comprehensive.case_discussion.quintuple import Case, Outcome, Proposal
from metafork.comprehensive.case_discussion.trace import trace
from metafork.comprehensive.case_discussion.typical_values import typical_values
from metafork.comprehensive.coalescing import loads_by_lines
from metafork.comprehensive.explanation import explained
from metafork.comprehensive.options import (
    ALL_MACHINES,
    MachineLike,
    Order,
    Static,
    checked_static,
    listed_values,
    machine_limits,
    with_assumptions,
)
from metafork.comprehensive.plugins import load
from metafork.comprehensive.reading import parse
from metafork.comprehensive.scheduled import scheduled_unit
from metafork.comprehensive.signals import OutOfTimeError, until
from metafork.comprehensive.systems.points import Number
from metafork.comprehensive.systems.start import Start, identifiers, start_of
from metafork.comprehensive.tree import render, report, tree_json
from metafork.comprehensive.tree.document import TreeDocument, document_of, is_sign
from metafork.comprehensive.tree.schedule_tree import (
    UNTOLD,
    CounterInfo,
    Leaf,
    NoLeaf,
    ScheduleTree,
    Statistics,
    Variant,
    numbered,
)
from metafork.evaluators.counter import Counter, CounterOf, details_of
from metafork.frontend import read_source
from metafork.ir.contraction import contracted_unit
from metafork.ir.invariants import check_program, checking
from metafork.ir.messages.diagnostics import Diagnostic
from metafork.ir.messages.source import Source, base_name
from metafork.ir.program import Program, Version
from metafork.ir.translation_unit import TranslationUnit
from metafork.runtime.machine import Between
from metafork.strategies.caching import to_be_tried, with_cached_arrays
from metafork.strategies.strategy import Remark, Strategy

Progress = Callable[[str, Statistics], None]

LEAST_READING = 2.0
"""Seconds of processor time in which a file is read whatever the time limit; so for the remarks on a finished tree."""

NO_PTX = "take no part: kernels of this back end are no PTX"
"""What is said of strategies on the IR where the hardware has no PTX."""


class NotReadInTimeError(Exception):
    """The time limit passed while the file was read, and there is nothing to return; the message says so."""


@dataclass(frozen=True)
class Result:
    """The comprehensive optimization of a file: one tree a schedule.

    ``unit`` is the parsed file, ``counters`` and ``strategies`` the names that were used, ``used`` what they name;
    ``warnings`` are about accesses that are not proved free of races;
    ``analyses`` is what was found out on the way.
    """

    unit: TranslationUnit
    schedules: tuple[ScheduleTree, ...]
    counters: tuple[str, ...]
    strategies: tuple[str, ...]
    warnings: tuple[Diagnostic, ...] = ()
    analyses: Analyses = field(default_factory=Analyses, repr=False, compare=False)
    used: tuple[tuple[Counter, ...], tuple[Strategy, ...]] = ((), ())

    @property
    def complete(self) -> bool:
        """Whether every tree was discussed to its end; false where the time limit ended one early."""
        return all(tree.complete for tree in self.schedules)

    @cached_property
    def document(self) -> TreeDocument:
        """The trees without their programs, as ``*.tree.json`` has them."""
        return TreeDocument(base_name(self.unit.source.name), tuple(document_of(tree) for tree in self.schedules))

    def to_json(self) -> str:
        """Return the text of ``*.tree.json``."""
        return tree_json.dumps(self.document)

    def to_dot(self) -> str:
        """Return the drawing as DOT text."""
        return render.dot(self.document)

    def to_svg(self, seconds: float | None = None) -> str:
        """Return the drawing as SVG, within ``seconds``.

        Raises ``render.NoGraphvizError`` where there is no Graphviz, ``render.TooLargeError``, and ``TimeoutExpired``.
        """
        return render.svg(self.to_dot(), seconds)

    def to_report(self, compiled: Mapping[str, str] | None = None) -> str:
        """Return ``report.md``: what was measured, tried, refused, and why.

        ``compiled`` is what is to be said of the code of kernels, by their names.
        """
        return report.markdown(self.document, self.schedules, self.unit.schedules, compiled)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Show the drawing in a notebook: an image in HTML.

        Where there is Markdown too, JupyterLab shows that and no SVG; of SVG within HTML, in a notebook that it does
        not trust, it shows the words only.
        """
        try:
            drawing = self.to_svg()
        except (render.NoGraphvizError, render.TooLargeError):
            return {"text/markdown": self.to_report(), "text/plain": repr(self)}
        from base64 import b64encode  # for notebooks alone, both
        from html import escape

        image = f"data:image/svg+xml;base64,{b64encode(drawing.encode()).decode()}"
        element = f'<img src="{image}" alt="{escape(repr(self))}" style="max-width: none"/>'
        return {"text/html": f'<div style="overflow: auto; max-height: 80vh">{element}</div>', "text/plain": repr(self)}

    def __repr__(self) -> str:
        parts = ", ".join(f"{tree.program.name}: {len(tree.leaves)} leaves" for tree in self.schedules)
        return f"<metafork result for {self.unit.source.name}: {parts}>"


def optimize(
    path_or_text: str | PathLike[str] | Source,
    *,
    counters: Sequence[str] | None = None,
    strategies: Sequence[str] | None = None,
    machine: MachineLike = None,
    assume: Sequence[str] = (),
    time_limit: float | None = None,
    strict: bool = False,
    plugins: Sequence[str] = (),
    progress: Progress | None = None,
    static: Static | None = None,
    order: Order = "cost",
    fma: bool = False,
    hardware: Hardware = NVIDIA,
    reassociate: bool = False,
) -> Result:
    """Return the decision trees of a MetaFork file, or of a text (a string with a line break or a brace).

    ``counters`` and ``strategies`` are names, used in the order given; ``machine`` (``"sm_80"``, ``"sm_80..sm_90"``,
    ``"T=1024,Z=12288"``, a ``Machine``, a mapping) fixes or bounds machine symbols: by default as ``hardware`` says
    (``"sm_75..sm_120"``), with ``"all"`` and by default with ``order="paper"`` not at all; ``assume`` are inequalities
    over parameters; ``strict`` refuses what is not proved free of races instead of warning.  ``plugins`` are modules,
    or ``.py`` files, with further counters and strategies.  ``static`` are values of program parameters for which
    leaves are compiled beside their dynamic kernels: ``{"s": (1, 2, 4), "B0": (16,)}``, in place of those that the text
    lists for a parameter; ``"auto"``: typical values where the text lists none of a schedule, where they make the code
    of a leaf simpler; ``"none"``: not those of the text either.  ``order`` says which leaf goes first where several are
    possible: ``"cost"`` one that is proved to do less work and to ask for no more sectors, ``"paper"`` that of the
    algorithm, whose default strategies include ``register_pressure``.  ``fma`` fuses sums of products
    (``metafork.ir.contraction``) where the text does not forbid it; ``reassociate`` allows reductions of floating-point
    numbers, in an order of their own (``metafork.frontend.schedules.ordered_sums``).  ``hardware`` says which machines
    trees are for and how wide warps are, where ``machine`` does not, how registers are counted, and whether strategies
    on the IR take part.

    ``time_limit`` is in seconds for the whole run.  What is being tried then is given up (in another than the main
    thread it is finished), and nothing else begun: trees come back as they are, marked incomplete
    (``Result.complete``).  The first schedule has at least the leaf that every limit admits; schedules that were not
    reached have none.

    Raises ``metafork.DiagnosticsError`` where the input is at fault, ``registry.UnknownNameError``,
    ``PluginError``, ``OptionError`` and ``metafork.runtime.machine.MachineError`` for names and values of options,
    ``options.StaticValueError`` for values of static parameters, ``InequalityError`` for an assumption that is none,
    ``metafork.ir.contraction.NameTakenError`` where sums are to be fused and ``fma`` is another name,
    ``OSError`` where the file cannot be read, and ``NotReadInTimeError`` where ``time_limit`` and some seconds of
    processor time do not suffice for that.
    """
    deadline = None if time_limit is None else time.monotonic() + time_limit
    brought = tuple(load(name) for name in plugins)
    chosen = registry.counters(counters, brought)
    transformers = registry.strategies(strategies, brought, order)
    unused = [strategy.name for strategy in transformers if strategy.on_ir and not hardware.ptx]
    transformers = tuple(strategy for strategy in transformers if strategy.name not in unused)
    own = {c.symbol: limit for c in chosen for limit in [details_of(c).limit] if limit is not None}
    if machine is None:
        machine = ALL_MACHINES if order == "paper" else hardware.machines
    fixed = machine_limits(machine, [c.symbol for c in chosen if c.kind == "performance"], own)
    source = source_of(path_or_text)
    try:
        with until(deadline, LEAST_READING):
            unit = exact_unit(with_assumptions(parse(source, reassociate=reassociate), assume))
    except OutOfTimeError:
        raise NotReadInTimeError("the time limit passed while the file was read") from None
    if isinstance(static, Mapping):
        static = checked_static(unit, static)
    warnings = check_races(unit, strict=strict, deadline=deadline)
    analyses = Analyses(structs.replace(hardware, warp_size=_width(fixed, hardware.warp_size)))
    unit = scheduled_unit(contracted_unit(unit, everywhere=fma), analyses)
    taken = identifiers(source.text)
    trees: list[ScheduleTree] = []
    for schedule in unit.schedules:
        program = schedule.program
        report_on = None if progress is None else _named_progress(progress, program.name)
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if left == 0.0 and trees:
            trees.append(undiscussed(program, chosen, transformers, taken, fixed))
        else:
            trees.append(discuss(program, chosen, transformers, taken, fixed, left, report_on, analyses, static, order))
        trees[-1] = replace(trees[-1], written=schedule.written)
    if unused:
        note = (", ".join(unused), NO_PTX)
        trees = [replace(tree, notes=(*tree.notes, note)) for tree in trees]
    names = tuple(c.name for c in chosen), tuple(s.name for s in transformers)
    return Result(unit, tuple(trees), *names, warnings, analyses, (chosen, transformers))


def _width(fixed: Mapping[str, Number | Between], otherwise: int) -> int:
    """Return how wide warps are on a machine; the widest of several, which no counter takes for less than it is."""
    width = fixed.get("warp_size", otherwise)
    return int(width.most if isinstance(width, Between) else width)


def _named_progress(progress: Progress, name: str) -> Callable[[Statistics], None]:
    return lambda statistics: progress(name, statistics)


def source_of(path_or_text: str | PathLike[str] | Source) -> Source:
    """Return the text of a path, or the text given as such.  Raises ``OSError``."""
    if isinstance(path_or_text, Source):
        return path_or_text
    if isinstance(path_or_text, str) and ("\n" in path_or_text or "{" in path_or_text):
        return Source("input.mf", path_or_text)
    path = Path(path_or_text)
    return read_source(path)


def discuss(
    program: Program,
    counters: Sequence[Counter],
    strategies: Sequence[Strategy],
    taken: frozenset[str] = frozenset(),
    fixed: Mapping[str, Number | Between] | None = None,
    time_limit: float | None = None,
    progress: Callable[[Statistics], None] | None = None,
    analyses: Analyses | None = None,
    static: Static | None = None,
    order: Order = "cost",
) -> ScheduleTree:
    """Return the tree of one schedule.

    ``taken`` are the names of the whole input, ``fixed`` numbers or bounds for machine fields and targets, ``static``
    what is asked for beside the values that the text lists, of which those are used that are program parameters of this
    schedule; ``order`` is that of leaves.
    """
    deadline = None if time_limit is None else time.monotonic() + time_limit
    analyses = analyses or Analyses()
    listed = listed_values(program, static)
    if isinstance(static, Mapping):
        program = structs.replace(program, static=tuple(listed.items()))
    strategies = to_be_tried(program, strategies)
    choice = with_cached_arrays(program, analyses)
    program = choice.program
    if checking():
        check_program(program)
        from metafork.strategies.checked import checked

        strategies = [checked(strategy) for strategy in strategies]
    start = start_of(program, counters, taken, fixed)
    by_cost = ByCost.of(program, analyses) if order == "cost" else None
    discussion: Discussion[Version] = Discussion(start, counters, strategies, time_limit, progress, analyses, by_cost)
    outcome = discussion.run(Version(program), choice.schedule)
    remarks: tuple[Remark, ...] = ()
    try:
        with until(deadline, LEAST_READING):
            remarks = explained(choice, strategies if outcome.complete else (), analyses, by_cost)
    except OutOfTimeError:
        outcome = structs.replace(outcome, complete=False)
    tree = _tree(program, start, outcome, strategies, choice.reasons, remarks)
    if tree.leaves:
        strided = loads_by_lines(tree.leaves[0].variants[0].version.program, analyses)
        tree = replace(tree, remarks=(*strided, *tree.remarks))
    typical = static == "auto" and not listed
    if not typical and not listed:
        return tree
    from metafork.comprehensive.case_discussion.instances import (  # for these
        NOTHING_TYPICAL,
        InstanceMaker,
        all_combinations,
    )

    combinations = typical_values(program, analyses.hardware.warp_size) if typical else all_combinations(listed)
    if not combinations:
        return replace(tree, notes=(*tree.notes, ("instances", NOTHING_TYPICAL))) if typical else tree
    found = (discussion.systems, discussion.measured, analyses)
    maker = InstanceMaker(combinations, strategies, outcome.counters, *found, deadline, typical)
    return maker.with_instances(tree, outcome.cases)


def undiscussed(
    program: Program,
    counters: Sequence[Counter],
    strategies: Sequence[Strategy],
    taken: frozenset[str] = frozenset(),
    fixed: Mapping[str, Number | Between] | None = None,
) -> ScheduleTree:
    """Return the tree of a schedule for which no time was left: no leaf anywhere in Start."""
    start = start_of(program, counters, taken, fixed)
    root = NoLeaf("time limit reached before this schedule was looked at")
    outcome: Outcome[Version] = Outcome(root, (), tuple(counters), start.derived, (), False, Statistics())
    return _tree(program, start, outcome, strategies, (), ())


def _tree(
    program: Program,
    start: Start,
    outcome: Outcome[Version],
    strategies: Sequence[Strategy],
    cache_reasons: Sequence[tuple[str, str]],
    remarks: tuple[Remark, ...],
) -> ScheduleTree:
    start = _without_targets_left_out(start, outcome.counters)
    shown = _shown(start, outcome)
    return ScheduleTree(
        program=program,
        machine=start.machine,
        start=start.constraints,
        derived=outcome.derived,
        counters=tuple(_info(c, start.canonical[c.symbol]) for c in outcome.counters),
        strategies=tuple(strategy.name for strategy in strategies),
        root=outcome.root,
        leaves=tuple(
            _leaf(program, number, case, outcome.counters, strategies, shown)
            for number, case in enumerate(outcome.cases, 1)
        ),
        notes=(
            *_sizes_to_tell(program),
            *((f"cache of {name}", why) for name, why in cache_reasons),
            *start.notes,
            *outcome.notes,
        ),
        complete=outcome.complete,
        fixed=start.fixed,
        opaque=start.opaque,
        remarks=remarks,
        statistics=outcome.statistics,
    )


def _sizes_to_tell(program: Program) -> Iterator[tuple[str, str]]:
    """Yield notes about arrays of unknown extents, and tables of pointers, if there are any."""
    walk = host_walk(program)
    effort = "" if walk is None else walk.effort
    tables = ", ".join(array.table for array in program.arrays if array.table)
    if tables:
        yield UNTOLD, f"`{program.function}` packs the rows of {tables} for each launch: the host {effort} before it."
    arrays = dict.fromkeys(array.whole or array.name for array in program.arrays if array.endless and not array.table)
    if arrays:
        whole = walk is not None and arrays.keys() <= walk.least.keys()
        yield (
            UNTOLD,
            f"`{program.function}` does not know how many elements some arrays have ({', '.join(arrays)}), which it is "
            f"to copy: {f'the host {effort} before each launch' if whole else 'the serial code runs'} unless "
            "`metafork_extent` or Python tells it, or a pragma. Kernels and their launches need not know it.",
        )


def _without_targets_left_out(start: Start, counters: Sequence[Counter]) -> Start:
    """Return the start system without the targets of counters that were left out: no condition depends on them."""
    left_out = start.targets - {start.canonical[counter.symbol] for counter in counters}
    return structs.replace(
        start,
        machine={key: symbol for key, symbol in start.machine.items() if symbol not in left_out},
        constraints=tuple(c for c in start.constraints if not c.symbols & left_out),
        targets=start.targets - left_out,
        fixed={symbol: number for symbol, number in start.fixed.items() if symbol not in left_out},
    )


def _shown(start: Start, outcome: Outcome[Version]) -> frozenset[str]:
    """Return the symbols that matter to a reader of a witness: those of conditions, not those computed from others."""
    conditions = [c for c in start.constraints if not is_sign(c)]
    conditions += [condition for case in outcome.cases for path in case.paths for condition in path]
    conditions += [limit for case in outcome.cases for one in case.proposals for limit in one.limits]
    names = {name for condition in conditions for name in condition.symbols}
    names |= {name for symbol in outcome.derived for operand in symbol.operands for name in operand.symbols}
    return frozenset(names - {symbol.name for symbol in outcome.derived})


def _info(counter: CounterOf[Version], limit: str) -> CounterInfo:
    details = details_of(counter)
    return CounterInfo(
        name=counter.name,
        kind=counter.kind,
        limit=limit,
        less_is_better=counter.less_is_better,
        target=counter.default_target,
        unit=details.unit,
        measure=details.measure,
        own=details.limit,
    )


def _leaf(
    program: Program,
    number: int,
    case: Case[Version],
    counters: Sequence[Counter],
    strategies: Sequence[Strategy],
    shown: frozenset[str],
) -> Leaf:
    available = [strategy.name for strategy in strategies]
    variants = [
        Variant(0, "", one.version, one.strategies, one.schedule, _effects(one, available), one.counters, one.limits)
        for one in case.proposals
    ]
    own = Variant(0, "", case.version, case.strategies, case.schedule, _effects(case, available), case.counters)
    return Leaf(
        id=number,
        systems=case.systems,
        trace=trace(case.steps, case.strategies, counters, strategies, case.counters),
        variants=numbered(f"{program.name}_leaf{number}", (*variants, own)),
        witness=None if case.witness is None else {n: v for n, v in case.witness.items() if n in shown},
    )


def _effects(case: Case[Version] | Proposal[Version], available: Sequence[str]) -> tuple[str, ...]:
    """Say in a few words what a version is like: where its arrays are kept, then the rest in the order of omega."""
    by_strategy = dict(zip(case.strategies, case.effects, strict=True))
    last = {effect.what: effect for effect in (by_strategy[name] for name in available if name in by_strategy)}
    mapping = case.version.program.mapping
    shown = [effect for effect in last.values() if not (effect.while_empty and mapping.cached)]
    kept = ((mapping.cached, "shared memory"), (mapping.transposed, "the registers of a warp"))
    words = [f"{', '.join(arrays)} in {place}" for arrays, place in kept if arrays]
    return (*words, *map(str, sorted(shown, key=lambda effect: not effect.of_memory)))
