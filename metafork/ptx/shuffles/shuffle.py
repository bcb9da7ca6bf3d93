"""The entry: PTX text in, PTX text with shuffles and a typed report out; and the count of global loads.

``before --> after`` is shown in ``synthesis``.  The input is never changed; a kernel about which anything is unclear
passes unchanged, with the reason in its report.
"""

from __future__ import annotations

import math
import re

from msgspec import Struct
from msgspec.structs import replace

from metafork.ptx.emulation.emulator import Emulation, Unclear, emulate, merge_visits
from metafork.ptx.emulation.evaluate import SIGNED_INDEX, Evaluator
from metafork.ptx.emulation.terms import LARGEST, Terms
from metafork.ptx.shuffles.detection import Plan, plan
from metafork.ptx.shuffles.synthesis import Variant, synthesize
from metafork.ptx.text.cfg import Cfg, build_cfg
from metafork.ptx.text.flatten import FlatBody, flatten
from metafork.ptx.text.parser import parse
from metafork.ptx.text.printer import print_module
from metafork.ptx.text.source import PtxError, Span
from metafork.ptx.text.syntax import Function, Item, Module

LARGEST_DELTA = 31

GRID_FITS = "grid-fits"
"""The name of the condition that the grid has at most ``MOST_BLOCKS`` blocks along x, which kernels check."""

MOST_BLOCKS = 1 << 20
"""With at most 1024 threads a block, thread numbers along x then have 30 bits."""


class Options(Struct, frozen=True):
    """How to transform.

    Attributes:
        max_delta: the largest |N| of a shuffle, 0 to 31; 0 leaves register reuse only.
        variant: what to write, see ``Variant``.
        signed_index: whether the assumption of that name is made (``evaluate``).
        hoist: whether a source may be moved up in its block to make deltas smaller.
        check_passes: whether the code may compare the lanes' passes of loops as it runs (``synthesis``), where lanes
            may be in different ones; without it such loads are left alone.
        grid_fits: whether proofs may rest on the condition of that name, which the code then checks.

    Raises:
        ValueError: ``max_delta`` is out of range.
    """

    max_delta: int = LARGEST_DELTA
    variant: Variant = Variant.FULL
    signed_index: bool = True
    hoist: bool = True
    check_passes: bool = True
    grid_fits: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.max_delta <= LARGEST_DELTA:
            raise ValueError(f"the largest delta is {self.max_delta}, not within 0 to {LARGEST_DELTA}")


class Shuffle(Struct, frozen=True):
    """One replaced load: where it and its source stand, the lanes between them (0: register reuse), bytes.

    ``checked`` says that the code compares the passes of the loops around, ``bordered`` that it looks for lanes at
    borders.
    """

    span: Span
    source: Span
    delta: int
    size: int
    hoisted: bool
    checked: bool
    bordered: bool = False


class LeftAlone(Struct, frozen=True):
    """A load that has a proved source and stays nevertheless."""

    span: Span
    reason: str


class KernelReport(Struct, frozen=True):
    """What happened to one kernel.

    Attributes:
        loads: ``ld.global`` instructions whose address depends on the thread index.
        shuffles: replaced loads with a delta other than 0.
        reuses: replaced loads with delta 0.
        left_alone: loads that could have been replaced but for the reason given.
        unchanged: why the kernel was left as it is, ``None`` where it was not.
        assumptions: the named assumptions that the proofs may rest on.
        questions: how often Z3 was asked.
    """

    name: str
    loads: int
    shuffles: tuple[Shuffle, ...]
    reuses: tuple[Shuffle, ...]
    left_alone: tuple[LeftAlone, ...]
    unchanged: str | None
    assumptions: tuple[str, ...]
    questions: int

    @property
    def mean_delta(self) -> float | None:
        """The mean |N| of the shuffles, ``None`` where there are none."""
        return sum(abs(s.delta) for s in self.shuffles) / len(self.shuffles) if self.shuffles else None


class ShuffleResult(Struct, frozen=True):
    """The transformed text and a report for each kernel; ``valid`` is false for the measuring variants."""

    text: str
    kernels: tuple[KernelReport, ...]
    valid: bool


def shuffle_text(text: str, options: Options | None = None) -> ShuffleResult:
    """Replace global loads of every kernel in PTX text by warp shuffles.

    Raises:
        PtxError: the text is no PTX.
    """
    options = options or Options()
    module = parse(text)
    changed, reports = shuffle_module(module, options)
    if changed is module:
        return ShuffleResult(text, reports, valid=True)
    printed = print_module(changed)
    if not options.variant.valid:
        printed = f"// INVALID RESULTS: the {options.variant.value} variant is for measuring only\n{printed}"
    return ShuffleResult(printed, reports, options.variant.valid)


def shuffle_module(module: Module, options: Options) -> tuple[Module, tuple[KernelReport, ...]]:
    """Transform a module; returns the very same object where nothing changed."""
    items: list[Item] = []
    reports: list[KernelReport] = []
    refusal = _refusal(module)
    matches = min(_capabilities(module), default=0) >= 70
    for item in module.items:
        if isinstance(item, Function) and item.kernel and item.body is not None:
            changed, report = _kernel(item, options, refusal, matches)
            reports.append(report)
            items.append(changed)
        else:
            items.append(item)
    if all(new is old for new, old in zip(items, module.items, strict=True)):
        return module, tuple(reports)
    return replace(module, items=tuple(items)), tuple(reports)


def _refusal(module: Module) -> str | None:
    """Return why no kernel of the module can take shuffles."""
    if module.version < (6, 2):
        return "activemask needs PTX ISA 6.2"
    if module.address_size == 32:
        return "addresses have 32 bits"
    old = [one for one in _capabilities(module) if one < 30]
    return f"sm_{old[0]} has no shuffles" if old else None


def _capabilities(module: Module) -> list[int]:
    found = [re.match(r"sm_(\d+)", target) for target in module.target]
    return [int(one[1]) for one in found if one is not None]


def _limits(kernel: Function) -> dict[str, int]:
    """Return the largest thread indices and extents that ``.reqntid`` and ``.maxntid`` leave.

    ``.reqntid`` gives the extents; of ``.maxntid`` only the product is a promise, whatever the block's shape.
    """
    limits: dict[str, int] = {}
    for directive in kernel.directives:
        words = directive.replace(",", " ").split()
        sizes = [int(word) for word in words[1:] if word.isdigit()]
        if words[0] == ".reqntid":
            extents = (*sizes, 1, 1)[:3]
        elif words[0] == ".maxntid":
            extents = (math.prod(sizes),) * 3
        else:
            continue
        for axis, extent in zip("xyz", extents, strict=True):
            for name, most in ((f"%tid.{axis}", max(extent - 1, 0)), (f"%ntid.{axis}", extent)):
                limits[name] = min(most, limits.get(name, LARGEST[name]))
    return limits


def _emulate(body: FlatBody, options: Options, limits: dict[str, int]) -> Emulation:
    cfg = build_cfg(body)
    terms = Terms(_limits(body.function) | limits)
    evaluator = Evaluator(terms, body, signed_index=options.signed_index)
    return emulate(cfg, evaluator, reach=options.max_delta, check_passes=options.check_passes)


def _plan_where_the_grid_fits(cfg: Cfg, strict: Emulation, options: Options, matches: bool) -> tuple[Plan, Emulation]:
    """Plan under ``grid-fits``; what the lane itself held, which no corner case guards, is proved without."""
    limits = {"%ctaid.x": MOST_BLOCKS - 1, "%nctaid.x": MOST_BLOCKS}
    emulation = _emulate(cfg.body, options, limits)
    without = merge_visits(strict.visits)
    visits = {}
    for position, visit in merge_visits(emulation.visits).items():
        own = without.get(position)
        if own is None:
            continue
        candidates = {source: match for source, match in visit.candidates.items() if match.lanes}
        candidates |= {source: match for source, match in own.candidates.items() if not match.lanes}
        visits[position] = replace(visit, candidates=candidates, sure=own.sure, apart=visit.apart or own.apart)
    chosen = plan(cfg, visits, emulation.flows, options.max_delta, hoist=options.hoist, matches=matches)
    return replace(chosen, most_blocks=MOST_BLOCKS), emulation


def _kernel(kernel: Function, options: Options, refusal: str | None, matches: bool) -> tuple[Function, KernelReport]:
    assumptions = (SIGNED_INDEX,) if options.signed_index else ()
    try:
        if refusal is not None:
            raise Unclear(refusal)
        body = flatten(kernel)
        emulation = _emulate(body, options, {})
        visits = merge_visits(emulation.visits)
        cfg = build_cfg(body)
        chosen = plan(cfg, visits, emulation.flows, options.max_delta, hoist=options.hoist, matches=matches)
        if options.grid_fits and emulation.terms.wraps_in_large_grids:
            other, assumed = _plan_where_the_grid_fits(cfg, emulation, options, matches)
            if len(other.replacements) > len(chosen.replacements):
                chosen, emulation = other, replace(assumed, questions=assumed.questions + emulation.questions)
                assumptions = (*assumptions, GRID_FITS)
    except (Unclear, PtxError) as reason:
        return kernel, KernelReport(kernel.name, 0, (), (), (), str(reason), assumptions, 0)
    spans = [instruction.span for instruction in body.instructions]
    replaced = [
        Shuffle(spans[r.position], spans[r.source], r.delta, r.size, r.source in chosen.hoists, r.checked, r.bordered)
        for r in chosen.replacements
    ]
    report = KernelReport(
        kernel.name,
        sum(visit.thread for visit in visits.values()),
        tuple(s for s in replaced if s.delta),
        tuple(s for s in replaced if not s.delta),
        tuple(LeftAlone(spans[position], reason) for position, reason in sorted(chosen.left_alone.items())),
        None if replaced else "no load has a source in another lane or an earlier register",
        assumptions,
        emulation.questions,
    )
    return synthesize(cfg, chosen, options.variant), report
