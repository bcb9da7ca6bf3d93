"""What each instruction computes, on symbolic values (PTXASW section 4.1, "instruction encoding").

Ring operations become polynomials, other integer operations atoms with a known meaning, floating point and whatever
is not known here uninterpreted functions of the operands.  An instruction whose result depends on other lanes or on
hidden state (``shfl``, ``addc``, …) gives a value of which nothing is known.

**Assumption ``signed-index``** (on by default): in C, signed index arithmetic does not overflow, and nvcc
computes ``int`` indices by ``.s32`` instructions.  A 32-bit value therefore carries, beside its value modulo 2^32,
the exact integer that its ``.s32`` additions and multiplications denote (``image``, 64 bits), which is what its sign
extension is taken to be.  ``.u32`` and ``.b32`` results have none: they may wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from metafork.ptx.emulation.terms import Poly, Terms
from metafork.ptx.text.flatten import FlatBody
from metafork.ptx.text.opcodes import names_in, written
from metafork.ptx.text.operands import float_bits, integer_literal
from metafork.ptx.text.syntax import (
    TYPE_BYTES,
    Address,
    Immediate,
    Instruction,
    Name,
    Negated,
    Offset,
    Operand,
    Pair,
    Vector,
)

MOST_EXTREMES = 8
"""The least, or greatest, of more values than this is compared as one value."""

SIGNED_INDEX = "signed-index"
"""The name of the assumption that signed 32-bit index arithmetic does not overflow."""


class Value(NamedTuple):
    """A register's value; ``image`` is the exact signed integer of a 32-bit value in 64 bits, where one is assumed."""

    poly: Poly
    image: Poly | None = None


Registers: TypeAlias = Mapping[str, Value]

_HIDDEN_STATE = frozenset(
    {"shfl", "vote", "match", "activemask", "redux", "elect", "addc", "subc", "madc", "fns", "alloca", "stacksave",
     "tex", "tld4", "suld", "ldmatrix", "movmatrix", "mma", "getctarank"}
)  # fmt: skip
_COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"}


def type_width(name: str) -> int:
    """Return the bits of a type, 1 for ``pred``."""
    return 1 if name == "pred" else 8 * TYPE_BYTES.get(name, 8)


def instruction_types(instruction: Instruction) -> list[str]:
    """Return the modifiers that are types, in order."""
    return [m for m in instruction.modifiers if m in TYPE_BYTES or m == "pred"]


class Evaluator:
    """Symbolic meaning of the instructions of one function."""

    def __init__(self, terms: Terms, body: FlatBody, *, signed_index: bool = True) -> None:
        """Evaluate ``body``; without ``signed_index`` no sign extension goes through a sum that may wrap."""
        self.terms = terms
        self.body = body
        self.signed_index = signed_index
        self.widths = {name: type_width(kind) for name, kind in body.registers.items()}
        self._rules: dict[str, Callable[[Instruction, Registers, str], Value | None]] = {
            "mov": self._mov, "add": self._add, "sub": self._sub, "mul": self._mul, "mad": self._mad, "neg": self._neg,
            "not": self._not, "and": self._bitwise, "or": self._bitwise, "xor": self._bitwise, "shl": self._shl,
            "shr": self._shr, "cvt": self._cvt, "cvta": self._cvta, "setp": self._setp, "selp": self._selp,
            "div": self._divide, "rem": self._divide, "min": self._divide, "max": self._divide,
        }  # fmt: skip

    # --- operands -----------------------------------------------------------------------------------------------

    def register(self, name: Name, registers: Registers) -> Value | None:
        """Return the value of a register, ``None`` for a register never written or a name that is none."""
        if name.component is None:
            return registers.get(name.text)
        return None

    def operand(self, operand: Operand, width: int, registers: Registers) -> Value:
        """Return an operand's value in ``width`` bits (the low ones of a wider register)."""
        terms = self.terms
        match operand:
            case Name(text, component):
                known = registers.get(text) if component is None else None
                if known is not None:
                    return known if known.poly.width == width else Value(self._fit(known.poly, width))
                if text == "WARP_SZ":
                    return Value(terms.constant(width, 32))
                if text in self.body.registers or text == "_":
                    return Value(terms.unknown(width))
                if text.startswith("%"):
                    return Value(terms.special(str(operand), width))
                return Value(terms.atom("symbol", width, (text,)))
            case Immediate(text):
                bits = float_bits(text, width)
                return Value(terms.constant(width, integer_literal(text) if bits is None else bits))
            case Negated(name):
                inner = self.operand(name, 1, registers).poly
                return Value(terms.add(inner, terms.constant(1, 1)))
            case Offset(name, offset):
                inner = self.operand(name, width, registers).poly
                return Value(terms.add(inner, terms.constant(width, offset)))
            case _:
                return Value(terms.unknown(width))

    def _fit(self, poly: Poly, width: int) -> Poly:
        return self.terms.truncate(poly, width) if poly.width > width else self.terms.zero_extend(poly, width)

    def address(self, operand: Operand, registers: Registers) -> Poly:
        """Return the 64-bit address of a memory operand, in the address space that the instruction names."""
        if isinstance(operand, Address):
            base = self.operand(operand.base, 64, registers).poly
            return self.terms.add(base, self.terms.constant(64, operand.offset))
        return self.terms.unknown(64)

    def guard(self, instruction: Instruction, registers: Registers) -> Poly | None:
        """Return the predicate under which the instruction runs, ``None`` for always."""
        if instruction.guard is None:
            return None
        poly = self.operand(instruction.guard.name, 1, registers).poly
        return self.terms.add(poly, self.terms.constant(1, 1)) if instruction.guard.negated else poly

    def image(self, value: Value) -> Poly:
        """Return the sign extension of a 32-bit value to 64 bits."""
        return value.image if value.image is not None else self.terms.sign_extend(value.poly, 64)

    # --- instructions -------------------------------------------------------------------------------------------

    def results(self, instruction: Instruction, registers: Registers) -> list[tuple[str, Value]]:
        """Return the registers that a pure instruction writes, with their values; the guard is not looked at."""
        destinations = [name.text for name in written(instruction)]
        if not destinations:
            return []
        opcode = instruction.opcode
        rule = self._rules.get(opcode)
        kinds = instruction_types(instruction)
        first = instruction.operands[0]
        if opcode == "mov" and (isinstance(first, Vector) or isinstance(instruction.operands[1], Vector)):
            return self._pack(instruction, registers, kinds[0] if kinds else "b64")
        if opcode == "setp":
            return self._setp_pair(instruction, registers)
        value: Value | None = None
        if rule is not None and kinds and len(destinations) == 1:
            value = rule(instruction, registers, kinds[-1])
        if value is not None:
            width = self.widths.get(destinations[0], value.poly.width)
            if width != value.poly.width:
                signed = kinds[0].startswith("s") and value.poly.width < width
                poly = self.terms.sign_extend(value.poly, width) if signed else self._fit(value.poly, width)
                value = Value(poly)
            return [(destinations[0], value)]
        return [(name, self._opaque(instruction, registers, index)) for index, name in enumerate(destinations)]

    def _opaque(self, instruction: Instruction, registers: Registers, index: int) -> Value:
        """An uninterpreted function of the operands, or nothing known where other things enter."""
        names = [name.text for name in written(instruction)]
        width = self.widths.get(names[index], 64)
        if instruction.opcode in _HIDDEN_STATE or "cc" in instruction.modifiers:
            return Value(self.terms.unknown(width))
        arguments: list[int | str | Poly] = [index]
        kinds = instruction_types(instruction)
        for operand in instruction.operands[1:]:
            for part in operand.elements if isinstance(operand, Vector) else (operand,):
                if isinstance(part, Name) and part.text in self.widths:
                    part_width = self.widths[part.text]
                elif isinstance(part, Negated):
                    part_width = 1
                elif isinstance(part, (Name, Immediate, Offset)):
                    part_width = type_width(kinds[-1]) if kinds else 64
                else:
                    return Value(self.terms.unknown(width))
                arguments.append(self.operand(part, part_width, registers).poly)
        return Value(self.terms.atom(f"op {instruction.mnemonic}", width, tuple(arguments)))

    def _integer(self, kind: str) -> bool:
        return kind[0] in "usb" and kind[1:].isdigit() and kind != "b128"

    def _sources(self, instruction: Instruction, registers: Registers, kind: str) -> list[Value]:
        width = type_width(kind)
        return [self.operand(operand, width, registers) for operand in instruction.operands[1:]]

    def _with_image(self, poly: Poly, kind: str, image: Callable[[], Poly]) -> Value:
        if kind == "s32" and self.signed_index and poly.terms:
            return Value(poly, image())
        return Value(poly)

    def _mov(self, instruction: Instruction, registers: Registers, kind: str) -> Value:
        return self.operand(instruction.operands[1], type_width(kind), registers)

    def _pack(self, instruction: Instruction, registers: Registers, kind: str) -> list[tuple[str, Value]]:
        terms, width = self.terms, type_width(kind)
        target, source = instruction.operands[0], instruction.operands[1]
        if isinstance(target, Vector):
            whole = self.operand(source, width, registers).poly
            part = width // len(target.elements)
            results = []
            for index, element in enumerate(target.elements):
                if not isinstance(element, Name) or element.text == "_":
                    continue
                moved = whole if index == 0 else self._shift_right(whole, index * part, "lshr")
                results.append((element.text, Value(terms.truncate(moved, part))))
            return results
        assert isinstance(source, Vector)
        part = width // len(source.elements)
        total = terms.constant(width, 0)
        for index, element in enumerate(source.elements):
            value = terms.zero_extend(self.operand(element, part, registers).poly, width)
            total = terms.add(total, terms.scale(value, 1 << (index * part)))
        return [(name.text, Value(total)) for name in names_in((target,))]

    def _add(self, instruction: Instruction, registers: Registers, kind: str) -> Value | None:
        if not self._integer(kind) or "sat" in instruction.modifiers:
            return None
        left, right = self._sources(instruction, registers, kind)
        terms = self.terms
        return self._with_image(
            terms.add(left.poly, right.poly), kind, lambda: terms.add(self.image(left), self.image(right))
        )

    def _sub(self, instruction: Instruction, registers: Registers, kind: str) -> Value | None:
        if not self._integer(kind) or "sat" in instruction.modifiers:
            return None
        left, right = self._sources(instruction, registers, kind)
        terms = self.terms
        return self._with_image(
            terms.subtract(left.poly, right.poly), kind, lambda: terms.subtract(self.image(left), self.image(right))
        )

    def _product(self, instruction: Instruction, registers: Registers, kind: str) -> Value | None:
        """``mul`` and the product of ``mad``: ``.lo`` in the type's width, ``.wide`` in twice that."""
        terms, width = self.terms, type_width(kind)
        left = self.operand(instruction.operands[1], width, registers)
        right = self.operand(instruction.operands[2], width, registers)
        if "lo" in instruction.modifiers:
            poly = terms.multiply(left.poly, right.poly)
            return self._with_image(poly, kind, lambda: terms.multiply(self.image(left), self.image(right)))
        if "wide" not in instruction.modifiers:
            return None
        if kind == "s32":
            return Value(terms.multiply(self.image(left), self.image(right)))
        extend = terms.sign_extend if kind[0] == "s" else terms.zero_extend
        return Value(terms.multiply(extend(left.poly, 2 * width), extend(right.poly, 2 * width)))

    def _mul(self, instruction: Instruction, registers: Registers, kind: str) -> Value | None:
        return self._product(instruction, registers, kind) if self._integer(kind) else None

    def _mad(self, instruction: Instruction, registers: Registers, kind: str) -> Value | None:
        product = self._product(instruction, registers, kind) if self._integer(kind) else None
        if product is None or "sat" in instruction.modifiers:
            return None
        addend = self.operand(instruction.operands[3], product.poly.width, registers)
        poly = self.terms.add(product.poly, addend.poly)
        if product.poly.width != 32:
            return Value(poly)
        return self._with_image(poly, kind, lambda: self.terms.add(self.image(product), self.image(addend)))

    def _neg(self, instruction: Instruction, registers: Registers, kind: str) -> Value | None:
        if not self._integer(kind):
            return None
        (value,) = self._sources(instruction, registers, kind)
        return self._with_image(self.terms.scale(value.poly, -1), kind, lambda: self.terms.scale(self.image(value), -1))

    def _not(self, instruction: Instruction, registers: Registers, kind: str) -> Value | None:
        (value,) = self._sources(instruction, registers, kind)
        return Value(self.terms.subtract(self.terms.constant(value.poly.width, -1), value.poly))

    def _bitwise(self, instruction: Instruction, registers: Registers, kind: str) -> Value | None:
        left, right = (value.poly for value in self._sources(instruction, registers, kind))
        return Value(self.bitwise(instruction.opcode, left, right))

    def bitwise(self, opcode: str, left: Poly, right: Poly) -> Poly:
        """Return ``and``, ``or`` or ``xor`` of two values; the Boolean ring for predicates."""
        terms, width = self.terms, left.width
        if left.is_constant and right.is_constant:
            a, b = left.constant, right.constant
            return terms.constant(width, a & b if opcode == "and" else a | b if opcode == "or" else a ^ b)
        if width == 1:
            if opcode == "xor":
                return terms.add(left, right)
            if opcode == "and":
                return terms.conjunction((left, right))
            return terms.negate(terms.conjunction((terms.negate(left), terms.negate(right))))
        if left == right:
            return terms.constant(width, 0) if opcode == "xor" else left
        if right < left:
            left, right = right, left
        for low, high in ((left, right), (right, left)):
            if opcode != "and" and self._disjoint(low, high):
                return terms.add(left, right)
            if low.is_constant and low.constant == 0:
                return terms.constant(width, 0) if opcode == "and" else high
            if opcode == "and" and self._masks_nothing(low, high):
                return high
        return terms.atom(opcode, width, (left, right))

    def _masks_nothing(self, mask: Poly, value: Poly) -> bool:
        """Tell whether a mask of low bits is wider than the bounds of a value (``%tid.x & 127`` of 128 threads)."""
        bounds = self.terms.bounds(value)
        low_bits = mask.is_constant and mask.constant & (mask.constant + 1) == 0
        return low_bits and bounds is not None and bounds[0] >= 0 and bounds[1] <= mask.constant

    def _disjoint(self, low: Poly, high: Poly) -> bool:
        """Tell whether ``low`` is smaller than a power of two that divides ``high``: then ``or`` adds."""
        bounds = self.terms.bounds(low)
        if bounds is None or bounds[0] < 0:
            return False
        size = 1 << bounds[1].bit_length()
        return high.constant % size == 0 and all(coefficient % size == 0 for _, coefficient in high.terms)

    def _shl(self, instruction: Instruction, registers: Registers, kind: str) -> Value | None:
        width = type_width(kind)
        value = self.operand(instruction.operands[1], width, registers).poly
        amount = self.operand(instruction.operands[2], 32, registers).poly
        if not amount.is_constant:
            return Value(self.terms.atom("shl", width, (value, amount)))
        return Value(self.terms.scale(value, 1 << amount.constant if amount.constant < width else 0))

    def _shr(self, instruction: Instruction, registers: Registers, kind: str) -> Value | None:
        width = type_width(kind)
        value = self.operand(instruction.operands[1], width, registers).poly
        amount = self.operand(instruction.operands[2], 32, registers).poly
        opcode = "ashr" if kind[0] == "s" else "lshr"
        if not amount.is_constant:
            return Value(self.terms.atom(opcode, width, (value, amount)))
        return Value(self._shift_right(value, amount.constant, opcode))

    def _shift_right(self, value: Poly, amount: int, opcode: str) -> Poly:
        width = value.width
        if opcode == "ashr":
            amount = min(amount, width - 1)
        if amount == 0:
            return value
        if amount >= width:
            return self.terms.constant(width, 0)
        if value.is_constant and (opcode == "lshr" or not value.constant >> (width - 1)):
            return self.terms.constant(width, value.constant >> amount)
        return self.terms.atom(opcode, width, (value, self.terms.constant(32, amount)))

    def _cvt(self, instruction: Instruction, registers: Registers, kind: str) -> Value | None:
        kinds = instruction_types(instruction)
        if len(kinds) != 2 or "sat" in instruction.modifiers or not all(map(self._integer, kinds)):
            return None
        terms, target = self.terms, type_width(kinds[0])
        value = self.operand(instruction.operands[1], type_width(kinds[1]), registers)
        if target <= value.poly.width:
            return Value(terms.truncate(value.poly, target), value.image if target == value.poly.width else None)
        if kinds[1] == "s32" and target == 64:
            return Value(self.image(value))
        extend = terms.sign_extend if kinds[1][0] == "s" else terms.zero_extend
        return Value(extend(value.poly, target))

    def _cvta(self, instruction: Instruction, registers: Registers, kind: str) -> Value | None:
        # A generic address of global memory is the global address itself.
        if "global" not in instruction.modifiers:
            return None
        return self.operand(instruction.operands[1], type_width(kind), registers)

    def _selp(self, instruction: Instruction, registers: Registers, kind: str) -> Value:
        width = type_width(kind)
        then, otherwise = (self.operand(operand, width, registers) for operand in instruction.operands[1:3])
        predicate = self.operand(instruction.operands[3], 1, registers).poly
        return self.select(predicate, then, otherwise)

    def select(self, predicate: Poly, then: Value, otherwise: Value) -> Value:
        """Return ``then`` where the predicate holds, else ``otherwise``."""
        if predicate.is_constant:
            return then if predicate.constant else otherwise
        if then.poly == otherwise.poly:
            return then
        return Value(self.terms.atom("select", then.poly.width, (predicate, then.poly, otherwise.poly)))

    def _divide(self, instruction: Instruction, registers: Registers, kind: str) -> Value | None:
        if not self._integer(kind):
            return None
        left, right = (value.poly for value in self._sources(instruction, registers, kind))
        return Value(self.terms.atom(kind[0].replace("b", "u") + instruction.opcode, left.width, (left, right)))

    # --- predicates ---------------------------------------------------------------------------------------------

    def _setp(self, instruction: Instruction, registers: Registers, kind: str) -> Value | None:
        return None

    def _setp_pair(self, instruction: Instruction, registers: Registers) -> list[tuple[str, Value]]:
        kind = instruction_types(instruction)[-1]
        comparison = next((m for m in instruction.modifiers if m in _COMPARISONS), None)
        operands: Sequence[Operand] = instruction.operands
        width = type_width(kind)
        left = self.operand(operands[1], width, registers).poly
        right = self.operand(operands[2], width, registers).poly
        if comparison is None or not self._integer(kind):
            name = f"op {instruction.mnemonic}"
            outcome = self.terms.atom(name, 1, (left, right))
            negation = outcome if len(operands) > 3 else self.terms.add(outcome, self.terms.constant(1, 1))
            if len(operands) > 3:
                combined = self.operand(operands[3], 1, registers).poly
                outcome = self.terms.atom(name, 1, (left, right, combined))
                negation = self.terms.atom(f"{name} negated", 1, (left, right, combined))
        else:
            outcome = self.compare(comparison, left, right, signed=kind[0] == "s")
            negation = self.terms.add(outcome, self.terms.constant(1, 1))
            combination = next((m for m in instruction.modifiers if m in ("and", "or", "xor")), None)
            if combination is not None and len(operands) > 3:
                combined = self.operand(operands[3], 1, registers).poly
                outcome = self.bitwise(combination, outcome, combined)
                negation = self.bitwise(combination, negation, combined)
        target = operands[0]
        pair = (target.first, target.second) if isinstance(target, Pair) else (target,)
        return [
            (name.text, Value(poly))
            for name, poly in zip(pair, (outcome, negation), strict=False)
            if isinstance(name, Name) and name.text != "_"
        ]

    def compare(self, comparison: str, left: Poly, right: Poly, *, signed: bool) -> Poly:
        """Return a comparison as a predicate over the atoms ``eq``, ``slt`` and ``ult``."""
        terms = self.terms
        one = terms.constant(1, 1)
        comparison = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(comparison, comparison)
        if comparison in ("ne", "ge", "le"):
            opposite = {"ne": "eq", "ge": "lt", "le": "gt"}[comparison]
            return terms.add(self.compare(opposite, left, right, signed=signed), one)
        if comparison == "gt":
            return self.compare("lt", right, left, signed=signed)
        difference = terms.subtract(left, right)
        if comparison == "eq":
            if difference.is_constant:
                return terms.constant(1, int(difference.constant == 0))
            return terms.atom("eq", 1, tuple(sorted((left, right))))
        if difference.is_constant and difference.constant == 0:
            return terms.constant(1, 0)
        decided = self._decided(left, right, signed=signed)
        if decided is not None:
            return terms.constant(1, int(decided))
        for poly, least in ((left, True), (right, False)):
            # nvcc joins `i < 1 || j < 1` to one comparison with the lesser of both.
            extremes = self._extremes(poly, "s" if signed else "u")
            if extremes is not None:
                kind, ways = extremes
                parts = [
                    self.compare("lt", way if least else left, right if least else way, signed=signed) for way in ways
                ]
                if (kind == "min") is least:
                    return terms.negate(terms.conjunction([terms.negate(part) for part in parts]))
                return terms.conjunction(parts)
        return terms.atom("slt" if signed else "ult", 1, (left, right))

    def _extremes(self, poly: Poly, sign: str, within: int = 0) -> tuple[str, tuple[Poly, ...]] | None:
        """Return what a value is the least or the greatest of, ``None`` where it is neither, or of too many."""
        number = poly.terms[0][0][0] if not poly.constant and len(poly.terms) == 1 else None
        if number is None or poly.terms[0] != ((number,), 1) or within == MOST_EXTREMES:
            return None
        atom = self.terms.atoms[number]
        kind = atom.kind[1:]
        if atom.kind[0] != sign or kind not in ("min", "max"):
            return None
        ways: list[Poly] = []
        for argument in atom.args:
            assert isinstance(argument, Poly)
            inner = self._extremes(argument, sign, within + 1)
            ways += inner[1] if inner is not None and inner[0] == kind else (argument,)
        return (kind, tuple(ways)) if len(ways) <= MOST_EXTREMES else None

    def _decided(self, left: Poly, right: Poly, *, signed: bool) -> bool | None:
        """Decide left < right by bounds, where they exclude a wrap."""
        half = 1 << (left.width - 1)
        low, high = (-half, half) if signed else (0, 2 * half)
        ranges = []
        for poly in (left, right):
            if poly.is_constant:
                value = poly.constant - 2 * half if signed and poly.constant >= half else poly.constant
                ranges.append((value, value))
                continue
            bounds = self.terms.bounds(poly)
            if bounds is None or bounds[0] < low or bounds[1] >= high:
                return None
            ranges.append(bounds)
        if ranges[0][1] < ranges[1][0]:
            return True
        return False if ranges[0][0] >= ranges[1][1] else None
