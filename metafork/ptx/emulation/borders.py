"""Addresses at borders: what a clamped or periodic index is in the lanes that are not at one.

``max(i - 1, 0)`` is ``i - 1`` but at the left border, ``(i + 1) % n`` is ``i + 1`` but at the right one.  An
instruction like these makes a *choice*: its result is one of a few simpler values, and one comparison in the kernel
tells which.  An address with every choice in it replaced by one alternative is a *form* of the address, true in the
lanes that the comparisons (``Check``) let pass::

    max.s32 %r7, %r6, 0;                    max.s32 %r7, %r6, 0;
    mul.wide.s32 %rd5, %r7, 4;        -->   setp.ne.b32 %border, %r7, %r6;
    add.s64 %rd6, %rd3, %rd5;               ...  in lanes without %border, %rd6 is %rd3 + 4·sext(%r6)

Only alternatives are looked at that most lanes of a large array can take: not those of a predicate on odd threads, or
of a period shorter than a warp.  That is a matter of profit; what is wrong in a lane is found out as the kernel runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from metafork.ptx.emulation.evaluate import Evaluator, Registers, Value, instruction_types, type_width
from metafork.ptx.emulation.terms import Poly, Terms
from metafork.ptx.text.syntax import Instruction

MOST_FORMS = 32
"""The most alternatives of one address that are followed; further ones are not looked at."""

SHORTEST_PERIOD = 32
"""Constant periods below this many lanes leave no lanes away from borders to speak of."""

LARGEST_TREE = 400
"""Addresses of more operations than this, written without sharing, have no forms."""


class What(Enum):
    """What a lane must find at an instruction for an alternative to be true."""

    OPERAND = "the result is the operand"
    REST = "the result is the first operand less the second"
    CONSTANT = "the result is the constant"
    TAKEN = "the predicate holds"
    NOT_TAKEN = "the predicate does not hold"
    NOT_NEGATIVE = "the operand, read as a signed number, is not negative"


class Check(NamedTuple):
    """A condition that the kernel computes at the instruction of this position; ``number`` is operand or constant."""

    position: int
    what: What
    number: int = 0


class Choice(NamedTuple):
    """What the value ``atom`` is under each check; for a zero extension, that it is the sign extension of ``extended``.

    A choice of a zero extension has no alternatives of its own: its operand may contain other choices.
    """

    atom: int
    alternatives: tuple[tuple[Check, Value], ...]
    extended: tuple[Check, Poly] | None = None


class Form(NamedTuple):
    """What an address is in lanes that all the checks let pass; its stride between lanes is constant and not 0."""

    address: Poly
    checks: frozenset[Check]


class _Open(NamedTuple):
    """An address on its way to a form; ``extended`` are the operands of zero extensions under what was chosen."""

    address: Poly
    checks: frozenset[Check]
    extended: tuple[tuple[Check, Poly], ...]


class Borders:
    """Finds the choices that instructions make, and the forms of addresses.

    ``at_border`` says of a predicate that it holds in most lanes, ``linear`` of a value that it is so in the thread.
    """

    def __init__(self, evaluator: Evaluator, at_border: Callable[[Poly], bool], linear: Callable[[Poly], bool]) -> None:
        self.at_border = at_border
        self.linear = linear
        self.evaluator = evaluator
        self.terms: Terms = evaluator.terms
        self._inside: dict[int, frozenset[int]] = {}
        self._sizes: dict[int, int] = {}

    # --- choices ------------------------------------------------------------------------------------------------

    def choice(
        self, position: int, instruction: Instruction, results: Sequence[tuple[str, Value]], registers: Registers
    ) -> Choice | None:
        """Return the choice that an instruction without a predicate makes, given what is in registers before it."""
        kinds = instruction_types(instruction)
        if len(results) != 1 or not kinds or kinds[-1][0] not in "sub":
            return None
        width = type_width(kinds[-1])
        name, value = results[0]
        if instruction.opcode in ("cvt", "mul", "mad"):
            return self._extension(position, instruction, kinds, registers)
        number = self._varying_atom(value)
        if number is None or self.evaluator.widths.get(name) != width:
            return None
        signed = kinds[-1][0] == "s"
        if instruction.opcode == "selp":
            operands = [self.evaluator.operand(operand, width, registers) for operand in instruction.operands[1:3]]
            return self._selection(position, number, operands[0], operands[1])
        alternatives = self._alternatives(position, instruction, width, registers, signed=signed)
        return Choice(number, tuple(alternatives)) if alternatives else None

    def guarded(self, position: int, chosen: Value, new: Value, old: Value) -> Choice | None:
        """Return the choice between what an instruction with a predicate computes and what was there before."""
        number = self._varying_atom(chosen)
        return None if number is None else self._selection(position, number, new, old)

    def _selection(self, position: int, number: int, then: Value, otherwise: Value) -> Choice | None:
        predicate = self.terms.atoms[number].args[0]
        if self.terms.atoms[number].kind != "select" or not isinstance(predicate, Poly):
            return None
        ways: list[tuple[Check, Value]] = []
        if self.at_border(predicate):
            ways.append((Check(position, What.TAKEN), then))
        if self.at_border(self.terms.negate(predicate)):
            ways.append((Check(position, What.NOT_TAKEN), otherwise))
        return Choice(number, tuple(ways)) if ways else None

    def _varying_atom(self, value: Value) -> int | None:
        terms = value.poly.terms
        if value.poly.constant or len(terms) != 1 or terms[0][1] != 1 or len(terms[0][0]) != 1:
            return None
        number = terms[0][0][0]
        return number if self.terms.atoms[number].varies and value.poly.width > 1 else None

    def _alternatives(
        self, position: int, instruction: Instruction, width: int, registers: Registers, *, signed: bool
    ) -> list[tuple[Check, Value]]:
        def operand(number: int) -> Value:
            return self.evaluator.operand(instruction.operands[number], width, registers)

        def is_operand(number: int) -> tuple[Check, Value]:
            return Check(position, What.OPERAND, number), operand(number)

        def is_constant(number: int) -> tuple[Check, Value]:
            return Check(position, What.CONSTANT, number), Value(self.terms.constant(width, number))

        match instruction.opcode:
            case "min" | "max":
                return [is_operand(n) for n in (1, 2) if self.linear(operand(3 - n).poly)]
            case "abs":
                return [is_operand(1)]
            case "rem":
                if operand(2).poly.is_constant and operand(2).poly.constant < SHORTEST_PERIOD:
                    return []
                # The remainder lies within the divisor, so of all x - q·n modulo 2^width it can only be that of q = 1.
                dividend, divisor = operand(1), operand(2)
                image: Poly | None = None
                if signed and width == 32:
                    image = self.terms.subtract(self._image(dividend), self._image(divisor))
                rest = Value(self.terms.subtract(dividend.poly, divisor.poly), image)
                return [is_operand(1), (Check(position, What.REST), rest)]
            case "and":
                # The multiples of a power of two that a division by it is made of begin with 0 and itself.
                masks = [o.constant for o in (operand(1).poly, operand(2).poly) if o.is_constant]
                steps = [mask & -mask for mask in masks if mask >> (width - 1)]
                if any(step < SHORTEST_PERIOD for step in steps or [mask + 1 for mask in masks]):
                    return []
                return [is_operand(1), is_operand(2), *map(is_constant, (0, *steps))]
            case "shr":
                # Quotients of a division by a constant, of which a multiplication may make a part, and signs.
                amount = operand(2).poly.constant
                if amount == width - 1:
                    return [is_constant(0)]
                short = amount < SHORTEST_PERIOD.bit_length() - 1 and self.linear(operand(1).poly)
                return [] if short else [is_constant(0), is_constant(1)]
            case _:
                return []

    def _image(self, value: Value) -> Poly:
        return self.evaluator.image(value)

    def _extension(
        self, position: int, instruction: Instruction, kinds: Sequence[str], registers: Registers
    ) -> Choice | None:
        if kinds[-1] != "u32" or (kinds[0] not in ("u64", "s64", "b64") and "wide" not in instruction.modifiers):
            return None
        operand = self.evaluator.operand(instruction.operands[1], 32, registers).poly
        number = self._varying_atom(Value(self.terms.zero_extend(operand, 64)))
        if number is None:
            return None
        return Choice(number, (), (Check(position, What.NOT_NEGATIVE, 1), operand))

    # --- forms --------------------------------------------------------------------------------------------------

    def forms(self, address: Poly, choices: Mapping[int, Choice]) -> tuple[Form, ...]:
        """Return the forms of an address under the choices made so far; none for an address without any."""
        inside = self._atoms_in(address)
        if not inside or sum(self._size(n) for monomial, _ in address.terms for n in monomial) > LARGEST_TREE:
            return ()
        made: dict[int, Choice] = {}
        extended: list[tuple[Check, Poly]] = []
        for position in sorted(choices):
            choice = choices[position]
            if choice.atom in inside:
                if choice.extended is not None:
                    extended.append(choice.extended)
                made.setdefault(choice.atom, choice)
        found: list[Form] = []
        pending = [_Open(address, frozenset(), tuple(extended))] if made else []
        for _ in range(MOST_FORMS):
            if not pending:
                break
            here = pending.pop(0)
            atoms = self._atoms_in(here.address)
            open_choices = [n for n in atoms if n in made and made[n].alternatives]
            if open_choices:
                # One within another is looked at after it, for it may be gone then.
                outer = max(open_choices, key=lambda n: (self.terms.atoms[n].depth, n))
                pending += [self._chosen(here, outer, *way) for way in made[outer].alternatives]
                continue
            here = self._signed_extensions(here)
            if here.checks and self._is_of_use(here.address):
                found.append(Form(here.address, here.checks))
        return tuple(found)

    def _chosen(self, here: _Open, number: int, check: Check, value: Value) -> _Open:
        images = {number: self._image(value)} if value.poly.width == 32 else {}

        def replaced(poly: Poly) -> Poly:
            return self.terms.substitute(poly, {number: value.poly}, images)

        extended = tuple((other, replaced(operand)) for other, operand in here.extended)
        return _Open(replaced(here.address), here.checks | {check}, extended)

    def _signed_extensions(self, here: _Open) -> _Open:
        """Take zero extensions for sign extensions where those go through the sum, as ``zext(i - 1)`` does not."""
        address, checks = here.address, here.checks
        for check, operand in here.extended:
            number = self._varying_atom(Value(self.terms.zero_extend(operand, 64)))
            sign = self.terms.sign_extend(operand, 64)
            if number is not None and number in self._atoms_in(address) and self._varying_atom(Value(sign)) is None:
                address = self.terms.substitute(address, {number: sign}, {})
                checks |= {check}
        return _Open(address, checks, ())

    def _is_of_use(self, address: Poly) -> bool:
        if not self.terms.comparable(address):
            return False
        step = self.terms.subtract(self.terms.shift(address, 1), address)
        return step.is_constant and step.constant != 0

    def _atoms_in(self, poly: Poly) -> frozenset[int]:
        """Return the atoms within a value that vary between lanes."""
        return frozenset().union(*(self._atoms_of(number) for monomial, _ in poly.terms for number in monomial))

    def _atoms_of(self, number: int) -> frozenset[int]:
        known = self._inside.get(number)
        if known is None:
            atom = self.terms.atoms[number]
            known = frozenset[int]()
            if atom.varies:
                known = known.union([number], *(self._atoms_in(a) for a in atom.args if isinstance(a, Poly)))
            self._inside[number] = known
        return known

    def _size(self, number: int) -> int:
        known = self._sizes.get(number)
        if known is None:
            inner = [n for a in self.terms.atoms[number].args if isinstance(a, Poly) for m, _ in a.terms for n in m]
            known = self._sizes[number] = min(1 + sum(map(self._size, inner)), LARGEST_TREE + 1)
        return known
