"""Instructions of Qualcomm's vector processor that make one register of two (Swizzleflow, section 5.1).

With ``u`` and ``v`` registers of ``n`` elements: ``valign(m)[i]`` is ``v[i+m]`` below ``n-m`` and ``u[i-n+m]`` above;
``vlalign(m)[i]`` is ``v[n-m+i]`` below ``m`` and ``u[i-m]`` above; ``vshuffe`` and ``vshuffo`` interleave the even or
odd elements, ``v`` on even places.
"""

from __future__ import annotations

import numpy as np

from strategies.swizzle.index import Index, Name
from strategies.swizzle.options import OptionSet, Tables, first_of_each


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
