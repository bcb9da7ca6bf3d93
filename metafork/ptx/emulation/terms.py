"""Symbolic values: polynomials over the bit-vectors of one width, with shared atoms.

A value of ``w`` bits is a polynomial with coefficients modulo 2^w over *atoms* (special registers, parameters,
uninterpreted loads, loop symbols, operations that are not ring operations).  Addition, subtraction and
multiplication modulo 2^w are ring operations, so equal polynomials are equal values without any assumption; width 1
is the Boolean ring, where ``xor`` is + and ``and`` is ·.  This is the cheap normal form of section 4.1's bit-vectors
(Z3 sees only what it cannot decide, see ``solver``).

Two facts are kept for every atom: whether it *varies* between lanes of a warp, and whether it depends on the
*thread* index at all.  ``shift`` rewrites a value of lane ``t`` into the same program point's value in lane
``t + n`` of the same row of threads: the A(%tid.x + N) of section 5.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

Monomial: TypeAlias = tuple[int, ...]
Argument: TypeAlias = "int | str | Poly"

MAXIMAL_TERMS = 48
"""A product with more monomials becomes one opaque atom."""


class Poly(NamedTuple):
    """A polynomial modulo 2^width: a constant and (monomial, coefficient) pairs in canonical order."""

    width: int
    constant: int
    terms: tuple[tuple[Monomial, int], ...]

    @property
    def is_constant(self) -> bool:
        """Whether no atom occurs."""
        return not self.terms


class Atom(NamedTuple):
    """An indivisible bit-vector; ``kind`` names its meaning, ``args`` are its arguments.

    Kinds: ``sreg`` (name), ``wide`` (64-bit copy of a non-negative special register), ``param`` (name, offset),
    ``symbol`` (address of a variable), ``load`` (space, epoch, address), ``loop`` (iteration number, or a register in
    a pass), ``unknown`` (serial), ``phi`` (join), ``entry`` (register at a loop's header), ``shifted`` (atom, lanes),
    ``sext``/``zext``/``trunc`` (value), else an operation on its arguments.
    """

    kind: str
    width: int
    args: tuple[Argument, ...]
    varies: bool
    thread: bool


LARGEST = {
    "%tid.x": 1023, "%tid.y": 1023, "%tid.z": 63, "%ntid.x": 1024, "%ntid.y": 1024, "%ntid.z": 64,
    "%ctaid.x": 2**31 - 2, "%ctaid.y": 65534, "%ctaid.z": 65534,
    "%nctaid.x": 2**31 - 1, "%nctaid.y": 65535, "%nctaid.z": 65535, "%laneid": 31,
}  # fmt: skip
"""Special registers with the largest value each can have (the PTX ISA's limits)."""

_THREAD_REGISTERS = frozenset({"%tid.x", "%tid.y", "%tid.z", "%laneid"})
_PRIVATE = frozenset({"unknown", "loop", "phi", "entry", "shifted"})
"""Kinds of atoms that, where they vary, say nothing of another lane's value."""

_SHIFTING = frozenset({"%tid.x", "%laneid"})


class Terms:
    """The atoms of one analysis; polynomials are only comparable within one table."""

    def __init__(self, limits: dict[str, int] | None = None) -> None:
        """Start empty; ``limits`` narrows the largest values of special registers (``.reqntid``)."""
        self.atoms: list[Atom] = []
        self.limits = LARGEST | (limits or {})
        self._interned: dict[tuple[str, int, tuple[Argument, ...]], int] = {}
        self._shifted: dict[tuple[int, int], Poly] = {}
        self._comparable: dict[int, bool] = {}
        self._serial = 0

    # --- construction -------------------------------------------------------------------------------------------

    def constant(self, width: int, value: int) -> Poly:
        """Return a constant, reduced modulo 2^width."""
        return Poly(width, value & ((1 << width) - 1), ())

    def atom(self, kind: str, width: int, args: tuple[Argument, ...], *, varies: bool | None = None) -> Poly:
        """Return the value of an atom; where ``varies`` is not given it follows from the arguments."""
        key = (kind, width, args)
        number = self._interned.get(key)
        if number is None:
            thread = kind == "sreg" and args[0] in _THREAD_REGISTERS
            if varies is None:
                varies = thread
                for argument in args:
                    if isinstance(argument, Poly):
                        varies = varies or self.varies(argument)
                        thread = thread or self.thread(argument)
            number = len(self.atoms)
            self._interned[key] = number
            self.atoms.append(Atom(kind, width, args, varies, thread))
        return Poly(width, 0, (((number,), 1),))

    def unknown(self, width: int) -> Poly:
        """Return a value of which nothing is known; two are never equal, nor are two lanes' values of one."""
        self._serial += 1
        return self.atom("unknown", width, (self._serial,), varies=True)

    def special(self, name: str, width: int) -> Poly:
        """Return a special register's value, zero-extended or truncated to ``width`` bits."""
        if name in self.limits:
            if width == 64:
                return self._wide(name)
            return self.atom("sreg", width, (name,))
        # %clock, %warpid, %smid and the like may change from read to read.
        return self.unknown(width)

    def _wide(self, name: str) -> Poly:
        thread = name in _THREAD_REGISTERS
        poly = self.atom("wide", 64, (name,), varies=thread)
        number = poly.terms[0][0][0]
        if thread and not self.atoms[number].thread:
            self.atoms[number] = self.atoms[number]._replace(thread=True)
        return poly

    # --- ring operations ----------------------------------------------------------------------------------------

    def add(self, left: Poly, right: Poly) -> Poly:
        """Return left + right modulo 2^width."""
        mask = (1 << left.width) - 1
        constant = (left.constant + right.constant) & mask
        if not right.terms:
            return Poly(left.width, constant, left.terms)
        if not left.terms:
            return Poly(left.width, constant, right.terms)
        total = dict(left.terms)
        for monomial, coefficient in right.terms:
            value = (total.get(monomial, 0) + coefficient) & mask
            if value:
                total[monomial] = value
            else:
                total.pop(monomial, None)
        return Poly(left.width, constant, tuple(sorted(total.items())))

    def scale(self, poly: Poly, factor: int) -> Poly:
        """Return factor · poly modulo 2^width."""
        mask = (1 << poly.width) - 1
        factor &= mask
        terms = tuple((monomial, c) for monomial, value in poly.terms if (c := value * factor & mask))
        return Poly(poly.width, poly.constant * factor & mask, terms)

    def subtract(self, left: Poly, right: Poly) -> Poly:
        """Return left − right modulo 2^width."""
        return self.add(left, self.scale(right, -1))

    def multiply(self, left: Poly, right: Poly) -> Poly:
        """Return left · right modulo 2^width."""
        if not left.terms:
            return self.scale(right, left.constant)
        if not right.terms:
            return self.scale(left, right.constant)
        if (len(left.terms) + 1) * (len(right.terms) + 1) > MAXIMAL_TERMS:
            return self.atom("mul", left.width, tuple(sorted((left, right))))
        width = left.width
        mask = (1 << width) - 1
        total: dict[Monomial, int] = {}
        for monomial, coefficient in (*left.terms, ((), left.constant)):
            for other, factor in (*right.terms, ((), right.constant)):
                product = tuple(sorted(monomial + other))
                if width == 1:  # Boolean: x · x = x
                    product = tuple(dict.fromkeys(product))
                total[product] = (total.get(product, 0) + coefficient * factor) & mask
        constant = total.pop((), 0)
        return Poly(width, constant, tuple(sorted((m, c) for m, c in total.items() if c)))

    # --- widths -------------------------------------------------------------------------------------------------

    def truncate(self, poly: Poly, width: int) -> Poly:
        """Return the low ``width`` bits: a ring homomorphism, so it goes through to the atoms."""
        if poly.width == width:
            return poly
        total = self.constant(width, poly.constant)
        for monomial, coefficient in poly.terms:
            product = self.constant(width, coefficient)
            for number in monomial:
                product = self.multiply(product, self._truncated_atom(number, width))
            total = self.add(total, product)
        return total

    def _truncated_atom(self, number: int, width: int) -> Poly:
        atom = self.atoms[number]
        argument = atom.args[0] if atom.args else None
        if atom.kind == "wide" and isinstance(argument, str):
            return self.atom("sreg", width, (argument,))
        if atom.kind in ("sext", "zext", "trunc") and isinstance(argument, Poly):
            if argument.width >= width:
                return self.truncate(argument, width)
            return self.zero_extend(argument, width) if atom.kind == "zext" else self.sign_extend(argument, width)
        return self.atom("trunc", width, (Poly(atom.width, 0, (((number,), 1),)),))

    def zero_extend(self, poly: Poly, width: int) -> Poly:
        """Return the unsigned value in ``width`` bits; goes through a sum whose bounds exclude a wrap."""
        return self._extend(poly, width, "zext", 0, (1 << poly.width) - 1)

    def sign_extend(self, poly: Poly, width: int) -> Poly:
        """Return the signed value in ``width`` bits; goes through a sum whose bounds exclude a wrap."""
        half = 1 << (poly.width - 1)
        return self._extend(poly, width, "sext", -half, half - 1)

    def _extend(self, poly: Poly, width: int, kind: str, least: int, most: int) -> Poly:
        if poly.width == width:
            return poly
        if not poly.terms:
            value = poly.constant - (1 << poly.width) if poly.constant > most else poly.constant
            return self.constant(width, value)
        if width == 64:
            bounds = self.bounds(poly)
            if bounds is not None and least <= bounds[0] and bounds[1] <= most:
                total = self.constant(64, signed(poly.constant, poly.width))
                for monomial, coefficient in poly.terms:
                    name = self.atoms[monomial[0]].args[0]
                    assert isinstance(name, str)
                    total = self.add(total, self.scale(self._wide(name), signed(coefficient, poly.width)))
                return total
        return self.atom(kind, width, (poly,))

    def bounds(self, poly: Poly) -> tuple[int, int] | None:
        """Return exact integer bounds of a sum over bounded special registers, ``None`` for anything else."""
        least = most = signed(poly.constant, poly.width)
        for monomial, coefficient in poly.terms:
            if len(monomial) != 1:
                return None
            atom = self.atoms[monomial[0]]
            if atom.kind not in ("sreg", "wide"):
                return None
            limit = self.limits[str(atom.args[0])] * signed(coefficient, poly.width)
            least += min(limit, 0)
            most += max(limit, 0)
        return least, most

    def leaves(self, poly: Poly) -> set[int]:
        """Return the atoms without arguments (and loads) that a value is made of, but for floating-point ones."""
        leaves: set[int] = set()
        for monomial, _ in poly.terms:
            for number in monomial:
                atom = self.atoms[number]
                if atom.kind.startswith("op "):
                    continue
                inner = [a for a in atom.args if isinstance(a, Poly)]
                if atom.kind == "load" or not inner:
                    leaves.add(number)
                for argument in inner:
                    leaves |= self.leaves(argument)
        return leaves

    # --- lanes --------------------------------------------------------------------------------------------------

    def varies(self, poly: Poly) -> bool:
        """Tell whether two lanes of a warp may hold different values."""
        return any(self.atoms[number].varies for monomial, _ in poly.terms for number in monomial)

    def thread(self, poly: Poly) -> bool:
        """Tell whether the thread index occurs."""
        return any(self.atoms[number].thread for monomial, _ in poly.terms for number in monomial)

    def shift(self, poly: Poly, lanes: int) -> Poly:
        """Return the value that the lane ``lanes`` further in the same row of threads holds."""
        if not self.varies(poly):
            return poly
        total = self.constant(poly.width, poly.constant)
        for monomial, coefficient in poly.terms:
            product = self.constant(poly.width, coefficient)
            for number in monomial:
                product = self.multiply(product, self._shifted_atom(number, lanes))
            total = self.add(total, product)
        return total

    def _shifted_atom(self, number: int, lanes: int) -> Poly:
        key = (number, lanes)
        known = self._shifted.get(key)
        if known is not None:
            return known
        atom = self.atoms[number]
        itself = Poly(atom.width, 0, (((number,), 1),))
        result: Poly
        if not atom.varies:
            result = itself
        elif atom.kind in ("sreg", "wide"):
            # In the row's other lane %tid.y and %tid.z are the same.
            moved = atom.args[0] in _SHIFTING
            result = self.add(itself, self.constant(atom.width, lanes)) if moved else itself
        elif atom.kind in _PRIVATE:
            result = self.atom("shifted", atom.width, (number, lanes), varies=True)
        else:
            arguments = tuple(self.shift(a, lanes) if isinstance(a, Poly) else a for a in atom.args)
            result = self.rebuild(atom, arguments)
        self._shifted[key] = result
        return result

    def comparable(self, poly: Poly) -> bool:
        """Tell whether a shifted value can be equal to an unshifted one: no part of it is known in one lane only."""
        return all(self._comparable_atom(number) for monomial, _ in poly.terms for number in monomial)

    def _comparable_atom(self, number: int) -> bool:
        known = self._comparable.get(number)
        if known is None:
            atom = self.atoms[number]
            known = not atom.varies or (
                atom.kind not in _PRIVATE and all(self.comparable(a) for a in atom.args if isinstance(a, Poly))
            )
            self._comparable[number] = known
        return known

    def substitute(self, poly: Poly, values: Mapping[int, Poly], images: Mapping[int, Poly]) -> Poly:
        """Return a value with others for some atoms; ``images`` are the sign extensions of 32-bit ones to 64 bits."""
        total = self.constant(poly.width, poly.constant)
        for monomial, coefficient in poly.terms:
            product = self.constant(poly.width, coefficient)
            for number in monomial:
                product = self.multiply(product, self._substituted_atom(number, values, images))
            total = self.add(total, product)
        return total

    def _substituted_atom(self, number: int, values: Mapping[int, Poly], images: Mapping[int, Poly]) -> Poly:
        if number in values:
            return values[number]
        atom = self.atoms[number]
        inner = atom.args[0] if atom.args else None
        if atom.kind == "sext" and atom.width == 64 and isinstance(inner, Poly) and not inner.constant:
            single = inner.terms[0] if len(inner.terms) == 1 else None
            if single is not None and single[1] == 1 and len(single[0]) == 1 and single[0][0] in images:
                return images[single[0][0]]
        if not any(isinstance(a, Poly) for a in atom.args):
            return Poly(atom.width, 0, (((number,), 1),))
        arguments = tuple(self.substitute(a, values, images) if isinstance(a, Poly) else a for a in atom.args)
        return self.rebuild(atom, arguments)

    def rebuild(self, atom: Atom, arguments: tuple[Argument, ...]) -> Poly:
        """Return the atom's operation on other arguments, through the constructor that simplifies it."""
        first = arguments[0] if arguments else None
        if isinstance(first, Poly):
            if atom.kind == "sext":
                return self.sign_extend(first, atom.width)
            if atom.kind == "zext":
                return self.zero_extend(first, atom.width)
            if atom.kind == "trunc":
                return self.truncate(first, atom.width)
        return self.atom(atom.kind, atom.width, arguments)

    def describe(self, poly: Poly) -> str:
        """Return a readable form, for reports and error messages."""
        parts = []
        for monomial, coefficient in poly.terms:
            factor = signed(coefficient, poly.width)
            name = "*".join(self._name(number) for number in monomial)
            parts.append(name if factor == 1 else f"{factor}*{name}")
        if poly.constant or not parts:
            parts.append(str(signed(poly.constant, poly.width)))
        return " + ".join(parts)

    def _name(self, number: int) -> str:
        atom = self.atoms[number]
        if atom.kind in ("sreg", "wide", "symbol"):
            return str(atom.args[0])
        if atom.kind == "param":
            return f"{atom.args[0]}" + (f"+{atom.args[1]}" if atom.args[1] else "")
        inner = ", ".join(self.describe(a) if isinstance(a, Poly) else str(a) for a in atom.args)
        return f"{atom.kind}({inner})"


def signed(value: int, width: int) -> int:
    """Return the two's complement reading of ``value``."""
    return value - (1 << width) if value >> (width - 1) else value
