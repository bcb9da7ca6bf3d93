"""Induction variables: what one pass of a loop adds to its registers (section 4.2).

Each loop is analysed once, over symbols for all registers that live at its header, so that a nest costs one walk a
loop and not one a pass of the surrounding ones.  A register that every way round the loop leaves as ``itself + step``,
with a step over registers that the loop does not change, has that step; with the values at an entry put in for the
symbols it becomes ``start + step · k`` there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from metafork.ptx.emulation.evaluate import Evaluator, Value
from metafork.ptx.emulation.states import State
from metafork.ptx.emulation.terms import Poly, Terms
from metafork.ptx.text.cfg import Cfg, Loop
from metafork.ptx.text.opcodes import written


class Step(Struct, frozen=True):
    """What a pass adds, over the symbols of the header; ``image`` is the exact integer of it for a 32-bit register."""

    poly: Poly
    image: Poly | None


class LoopSummary(Struct, frozen=True):
    """A loop's symbols (register → atom), the registers it changes, and what a pass does to them.

    ``steps`` are added; ``resets`` are values over registers that the loop does not change, which a register has
    after every pass whatever it had before.
    """

    symbols: Mapping[str, Poly]
    changed: frozenset[str]
    steps: Mapping[str, Step]
    resets: Mapping[str, Poly]


def changed_registers(cfg: Cfg, loop: Loop) -> frozenset[str]:
    """Return the registers that a loop may write."""
    changed: set[str] = set()
    for number in loop.blocks:
        block = cfg.blocks[number]
        for instruction in cfg.body.instructions[block.start : block.end]:
            changed.update(name.text for name in written(instruction))
    return frozenset(changed)


def header_symbols(terms: Terms, widths: Mapping[str, int], loop: Loop, live: Iterable[str]) -> dict[str, Poly]:
    """Return a symbol for each register that lives at the header."""
    return {
        name: terms.atom("entry", widths[name], (loop.header, name), varies=True)
        for name in sorted(live)
        if name in widths
    }


def summarize(
    terms: Terms, symbols: Mapping[str, Poly], changed: frozenset[str], latches: Sequence[State], oldest_epoch: int
) -> LoopSummary:
    """Return the steps of a loop from the states that go round it, which began with the symbols.

    Loads from memory as of ``oldest_epoch`` or later were made in the pass, and may differ from pass to pass.
    """
    moving = {symbols[name].terms[0][0][0] for name in changed & symbols.keys()}
    fixed = {symbols[name].terms[0][0][0] for name in symbols.keys() - changed}

    def variant(poly: Poly) -> bool:
        for monomial, _ in poly.terms:
            for number in monomial:
                atom = terms.atoms[number]
                if number in moving or atom.kind in ("loop", "phi", "unknown", "shifted"):
                    return True
                if number in fixed:
                    continue
                if atom.kind == "load" and isinstance(atom.args[1], int) and atom.args[1] >= oldest_epoch:
                    return True
                if any(isinstance(argument, Poly) and variant(argument) for argument in atom.args):
                    return True
        return False

    steps: dict[str, Step] = {}
    resets: dict[str, Poly] = {}
    for name in sorted(changed & symbols.keys()):
        after = {value.poly for latch in latches if (value := latch.registers.get(name)) is not None}
        if len(after) == 1 and not variant(reset := after.pop()) and all(name in latch.registers for latch in latches):
            resets[name] = reset
            continue
        found: set[Step] = set()
        for latch in latches:
            value = latch.registers.get(name)
            if value is None:
                break
            step = terms.subtract(value.poly, symbols[name])
            if variant(step):
                break
            image: Poly | None = None
            if value.image is not None:
                image = terms.subtract(value.image, terms.sign_extend(symbols[name], 64))
                if variant(image):
                    image = None
            found.add(Step(step, image))
        else:
            if len(found) == 1:
                steps[name] = found.pop()
    return LoopSummary(symbols, changed, steps, resets)


def enter(
    evaluator: Evaluator, summary: LoopSummary, registers: Mapping[str, Value], iteration: Poly, serial: int
) -> dict[str, Value]:
    """Return the registers in pass ``iteration`` of a loop entered with ``registers``; without a step, an unknown."""
    terms = evaluator.terms
    values = {
        symbol.terms[0][0][0]: registers[name].poly for name, symbol in summary.symbols.items() if name in registers
    }
    images = {
        symbol.terms[0][0][0]: evaluator.image(registers[name])
        for name, symbol in summary.symbols.items()
        if name in registers and registers[name].poly.width == 32
    }
    result = dict(registers)
    for name in summary.changed & registers.keys():
        start, step = registers[name], summary.steps.get(name)
        width = start.poly.width
        if name in summary.resets and terms.substitute(summary.resets[name], values, images) == start.poly:
            continue
        by = None if step is None or width == 1 else terms.substitute(step.poly, values, images)
        if step is None or by is None or by.width != width:
            result[name] = Value(terms.atom("loop", width, (iteration.terms[0][0][0], serial, name), varies=True))
        elif by.terms or by.constant:
            poly = terms.add(start.poly, terms.multiply(by, terms.truncate(iteration, width)))
            image = None if step.image is None else terms.substitute(step.image, values, images)
            if image is not None:
                image = terms.add(evaluator.image(start), terms.multiply(image, iteration))
            result[name] = Value(poly, image)
    return result
