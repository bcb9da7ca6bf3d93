"""How many loads from global memory one thread makes, at most: a polynomial in kernel parameters.

The count is that of the path with the most loads.  A loop counts its passes times the loads of one: for a loop that
ends when ``start + step · k`` reaches a bound, the passes are ``(bound − start) / step``, taken as a polynomial, with
``x & mask`` bounded by 0 and ``mask`` (nvcc's remainder loops).  Two things are taken for granted, and named: the
parameters are not negative, and a counting loop reaches its bound without wrapping (``counting-loops``).  A loop of
any other form makes the count unknown, with the reason.

The original loads behind shuffles (``@%shuffle_corner``) are made in corner cases only; they are counted apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

from msgspec import Struct, field

from metafork.ptx.emulation.emulator import Branch, Unclear, emulate
from metafork.ptx.emulation.evaluate import Evaluator
from metafork.ptx.emulation.terms import Poly, Terms, signed
from metafork.ptx.text.cfg import Cfg, Loop, build_cfg
from metafork.ptx.text.flatten import flatten
from metafork.ptx.text.graph import EXIT
from metafork.ptx.text.opcodes import PREFIX
from metafork.ptx.text.source import PtxError
from metafork.ptx.text.syntax import Function, Instruction

COUNTING_LOOPS = "counting-loops"
"""The name of the assumption that loops reach their bound without wrapping, over parameters that are not negative."""

Names: TypeAlias = "tuple[str, ...]"


class Count(Struct, frozen=True):
    """A polynomial: products of names (parameters as PTX calls them, ``%ntid.x``, …) → coefficient."""

    terms: Mapping[Names, Fraction] = field(default_factory=dict)

    def __add__(self, other: Count) -> Count:
        total = dict(self.terms)
        for names, coefficient in other.terms.items():
            total[names] = total.get(names, Fraction(0)) + coefficient
        return Count({names: value for names, value in total.items() if value})

    def __mul__(self, other: Count) -> Count:
        total: dict[Names, Fraction] = {}
        for names, coefficient in self.terms.items():
            for others, factor in other.terms.items():
                product = tuple(sorted(names + others))
                total[product] = total.get(product, Fraction(0)) + coefficient * factor
        return Count({names: value for names, value in total.items() if value})

    def largest(self, other: Count) -> Count:
        """Return a bound of both: the greater coefficient of each product, for values that are not negative."""
        products = self.terms.keys() | other.terms.keys()
        zero = Fraction(0)
        greater = {names: max(self.terms.get(names, zero), other.terms.get(names, zero)) for names in products}
        return Count({names: value for names, value in greater.items() if value})

    def value(self, values: Mapping[str, int]) -> Fraction:
        """Evaluate the polynomial.

        Raises:
            KeyError: a name has no value.
        """
        total = Fraction(0)
        for names, coefficient in self.terms.items():
            for name in names:
                coefficient *= values[name]
            total += coefficient
        return total

    def __str__(self) -> str:
        parts = []
        for names, coefficient in sorted(self.terms.items(), reverse=True):
            product = "*".join(names)
            parts.append(str(coefficient) if not names else product if coefficient == 1 else f"{coefficient}*{product}")
        return " + ".join(parts) or "0"


ONE = Count({(): Fraction(1)})


class GlobalLoads(Struct, frozen=True):
    """Loads of one thread.

    Attributes:
        count: those every thread makes, at most; ``None`` where a loop's passes are not known.
        corner: as ``count``, of the loads that only lanes without a source make.
        reason: why the count is not known.
        assumptions: the names of what the count takes for granted.
    """

    count: Count | None
    corner: Count | None
    reason: str | None
    assumptions: tuple[str, ...]


def count_global_loads(kernel: Function) -> GlobalLoads:
    """Count the loads that a thread of a kernel makes from global memory."""
    try:
        body = flatten(kernel)
        cfg = build_cfg(body)
        terms = Terms()
        emulation = emulate(cfg, Evaluator(terms, body), reach=0)
        counter = _Counter(cfg, terms, emulation.branches)
        count, corner = counter.region(None, 0)
    except (Unclear, PtxError) as reason:
        return GlobalLoads(None, None, str(reason), ())
    return GlobalLoads(count, corner, None, (COUNTING_LOOPS,) if cfg.loops else ())


class _Counter:
    def __init__(self, cfg: Cfg, terms: Terms, branches: tuple[Branch, ...]) -> None:
        self.cfg = cfg
        self.terms = terms
        self.branches = branches

    def region(self, loop: Loop | None, start: int) -> tuple[Count, Count]:
        """Return the most loads on a path through the function, or through one pass of a loop."""
        best: dict[int, tuple[Count, Count]] = {start: (Count(), Count())}
        total = (Count(), Count())
        for block in self.cfg.order:
            if block not in best:
                continue
            before = best[block]
            inner = self.cfg.loops.get(block)
            if inner is not None and (loop is None or inner.header != loop.header):
                once = self.region(inner, block)
                passes = self.passes(inner)
                own = (once[0] * passes, once[1] * passes)
                successors = {s for b in inner.blocks for s in self.cfg.blocks[b].successors if s not in inner.blocks}
            else:
                own = self._own(block)
                successors = set(self.cfg.blocks[block].successors)
            after = (before[0] + own[0], before[1] + own[1])
            total = (total[0].largest(after[0]), total[1].largest(after[1]))
            for successor in successors:
                if successor == EXIT or (
                    loop is not None and (successor == loop.header or successor not in loop.blocks)
                ):
                    continue
                known = best.get(successor)
                best[successor] = after if known is None else (known[0].largest(after[0]), known[1].largest(after[1]))
        return total

    def _own(self, number: int) -> tuple[Count, Count]:
        block = self.cfg.blocks[number]
        loads = [i for i in self.cfg.body.instructions[block.start : block.end] if i.opcode == "ld" and _is_global(i)]
        corner = sum(i.guard is not None and i.guard.name.text.startswith(PREFIX) for i in loads)
        return _number(len(loads) - corner), _number(corner)

    def passes(self, loop: Loop) -> Count:
        """Return a bound of a loop's passes.

        Raises:
            Unclear: the loop does not count.
        """
        inside = [b for b in self.branches if b.block in loop.blocks and b.loop == loop.header]
        leaving = [b for b in inside if any(s not in loop.blocks for s in self.cfg.blocks[b.block].successors)]
        if len({b.block for b in leaving}) != 1:
            raise Unclear(f"the loop at {self._place(loop)} has no single exit")
        bounds = [self._passes(loop, branch) for branch in leaving]
        total = bounds[0]
        for bound in bounds[1:]:
            total = total.largest(bound)
        return total

    def _place(self, loop: Loop) -> str:
        return str(self.cfg.body.instructions[self.cfg.blocks[loop.header].start].span)

    def _passes(self, loop: Loop, branch: Branch) -> Count:
        taken = self.cfg.blocks[branch.block].successors[0]
        stays = branch.guard if taken in loop.blocks else self.terms.add(branch.guard, self.terms.constant(1, 1))
        unclear = Unclear(f"the passes of the loop at {self._place(loop)} are not known")
        if len(stays.terms) != 1 or len(stays.terms[0][0]) != 1:
            raise unclear
        atom = self.terms.atoms[stays.terms[0][0][0]]
        left, right = atom.args if len(atom.args) == 2 else (None, None)
        if not isinstance(left, Poly) or not isinstance(right, Poly):
            raise unclear
        holds = stays.constant == 0
        distance = self.terms.subtract(right, left)
        step, rest = self._split(distance, loop)
        if step is None or step == 0 or (atom.kind == "eq" and holds) or atom.kind not in ("eq", "slt", "ult"):
            raise unclear
        # Another pass follows pass k while rest + step·k is not 0 (eq), or positive (slt, ult; negated: at most 0).
        towards = step if holds else -step
        if atom.kind != "eq" and towards > 0:
            raise unclear
        extra = 0 if atom.kind == "eq" or holds else 1
        bound = self._bound(rest if step < 0 else self.terms.scale(rest, -1), extra, unclear)
        # ⌈d / s⌉ ≤ (d + s − 1) / s; an equality is reached exactly.
        size = abs(step)
        slack = 0 if atom.kind == "eq" else size - 1
        return (bound + _number(slack)) * Count({(): Fraction(1, size)}) + ONE

    def _split(self, distance: Poly, loop: Loop) -> tuple[int | None, Poly]:
        """Return the coefficient of the loop's iteration number and the rest."""
        step: int | None = None
        rest = self.terms.constant(distance.width, distance.constant)
        for monomial, coefficient in distance.terms:
            if len(monomial) == 1 and self._is_iteration(monomial[0], loop) and step is None:
                step = signed(coefficient, distance.width)
            else:
                rest = self.terms.add(rest, Poly(distance.width, 0, ((monomial, coefficient),)))
        return step, rest

    def _is_iteration(self, number: int, loop: Loop) -> bool:
        atom = self.terms.atoms[number]
        argument = atom.args[0] if atom.args else None
        if atom.kind == "trunc" and isinstance(argument, Poly) and len(argument.terms) == 1:
            return self._is_iteration(argument.terms[0][0][0], loop)
        return atom.kind == "loop" and len(atom.args) == 2 and argument == loop.header

    def _bound(self, poly: Poly, extra: int, unclear: Unclear) -> Count:
        """Return an upper bound of a value over parameters."""
        total = _number(signed(poly.constant, poly.width) + extra)
        for monomial, value in poly.terms:
            coefficient = signed(value, poly.width)
            term = _number(coefficient)
            for number in monomial:
                term = term * self._bound_atom(number, coefficient > 0 and len(monomial) == 1, unclear)
            total = total + term
        return total

    def _bound_atom(self, number: int, above: bool, unclear: Unclear) -> Count:
        atom = self.terms.atoms[number]
        if atom.kind in ("param", "sreg", "wide"):
            offset = f"+{atom.args[1]}" if atom.kind == "param" and atom.args[1] else ""
            return Count({(f"{atom.args[0]}{offset}",): Fraction(1)})
        inner = atom.args[0] if atom.args else None
        if atom.kind in ("sext", "zext") and isinstance(inner, Poly) and len(inner.terms) == 1 and not inner.constant:
            return self._bound(inner, 0, unclear)
        if atom.kind == "and":
            masks = [a.constant for a in atom.args if isinstance(a, Poly) and a.is_constant]
            if masks:
                return _number(masks[0] if above else 0)
        raise unclear


def _is_global(instruction: Instruction) -> bool:
    return any(modifier.split("::")[0] == "global" for modifier in instruction.modifiers)


def _number(value: int) -> Count:
    return Count({(): Fraction(value)}) if value else Count()
