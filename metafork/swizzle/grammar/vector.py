"""Instructions of Qualcomm's vector processor that make one register of two (Swizzleflow, section 5.1).

With ``u`` and ``v`` registers of ``n`` elements: ``valign(m)[i]`` is ``v[i+m]`` below ``n-m`` and ``u[i-n+m]`` above;
``vlalign(m)[i]`` is ``v[n-m+i]`` below ``m`` and ``u[i-m]`` above; ``vshuffe`` and ``vshuffo`` interleave the even or
odd elements, ``v`` on even places.
"""

from __future__ import annotations

import re

import numpy as np

from metafork.swizzle.model.index import Index, Name, Number, binary, compare, to_text
from metafork.swizzle.model.options import OptionSet, Tables, first_of_each
from metafork.swizzle.model.problem import Case, Read


def pairings(registers: int, lanes: int) -> OptionSet:
    """Return every instruction on every pair of ``registers`` vectors; a value is ``register*lanes + element``."""
    i = np.arange(lanes)
    tables: list[Tables] = []
    names: list[Index] = []

    def add(name: str, source: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
        tables.append(source.astype(np.int16))
        names.append(Name(name))

    for u in range(registers):
        add(f"mov(r{u})", u * lanes + i)
    for u in range(registers):
        for v in range(registers):
            pair = f"r{u}, r{v}"
            even = i & ~1
            add(f"vshuffe({pair})", np.where(i % 2 == 0, v, u) * lanes + even)
            add(f"vshuffo({pair})", np.where(i % 2 == 0, v, u) * lanes + even + 1)
            for m in range(1, lanes):
                add(f"valign({pair}, {m})", np.where(i < lanes - m, v * lanes + i + m, u * lanes + i - lanes + m))
                add(f"vlalign({pair}, {m})", np.where(i < m, v * lanes + lanes - m + i, u * lanes + i - m))
    stacked = np.stack(tables)
    kept = first_of_each(stacked)
    chosen = [names[int(row)] for row in kept]
    return OptionSet(stacked[kept], chosen.__getitem__)


def cases(instruction: Index, registers: int, lanes: int) -> tuple[Case, ...]:
    """Spell an instruction that appends a register as a gather: the others are copied."""
    row, element = Name("d0"), Name("d1")
    numbers = [int(digits) for digits in re.findall(r"\d+", to_text(instruction))]
    kind = to_text(instruction).split("(")[0]
    copied = Case(compare("<", row, Number(registers)), Read(0, (row, element)))

    def read(register: int, at: Index) -> Read:
        return Read(0, (Number(register), at))

    if kind == "mov":
        return copied, Case(None, read(numbers[0], element))
    u, v = numbers[0], numbers[1]
    if kind in {"vshuffe", "vshuffo"}:
        odd = binary("%", element, Number(2))
        at = binary("+", binary("-", element, odd), Number(int(kind == "vshuffo")))
        return copied, Case(compare("==", odd, Number(0)), read(v, at)), Case(None, read(u, at))
    shift = numbers[2]
    first = lanes - shift if kind == "valign" else shift
    lower = binary("+", element, Number(shift if kind == "valign" else lanes - shift))
    return (
        copied,
        Case(compare("<", element, Number(first)), read(v, lower)),
        Case(None, read(u, binary("-", element, Number(first)))),
    )
