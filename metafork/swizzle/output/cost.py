"""What a solution costs on a named architecture, and the order of solutions.

Counted on the straight-line code of one thread: shuffles, selects (register selects and the steps of barrel
rotations alike), folds, address and condition arithmetic, and for arrays in shared memory the bank degree of every
access of a warp, by simulation.  ``accumulates`` is Swizzle Inventor's objective: accumulation statements whose
condition is not constantly false (section 4.3).
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from metafork.swizzle.model.index import Number, evaluate, operations
from metafork.swizzle.model.problem import Problem
from metafork.swizzle.output.banks import WARP, WORD, bank_degree, passes
from metafork.swizzle.output.instructions import Combine, Integral, Load, Put, Select, Shuffle, ThreadCode
from metafork.swizzle.search.search import Solution


class Architecture(Struct, frozen=True):
    """Issue slots a thread of each kind of instruction takes, relative to an addition."""

    name: str
    shuffle: float
    select: float
    combine: float
    integer: float
    shared_access: float


# Relative throughput per multiprocessor of the programming guide: 64 or 128 additions, 32 shuffles and shared words.
ARCHITECTURES = {
    one.name: one
    for one in (
        Architecture("sm_35", shuffle=6.0, select=1.0, combine=1.0, integer=1.2, shared_access=6.0),
        Architecture("sm_70", shuffle=2.0, select=1.0, combine=1.0, integer=1.0, shared_access=2.0),
        Architecture("sm_90", shuffle=4.0, select=2.0, combine=1.0, integer=2.0, shared_access=4.0),
    )
}
DEFAULT_ARCHITECTURE = "sm_70"


class Cost(Struct, frozen=True):
    """The counts of one thread's code, and their weighted sum."""

    shuffles: int
    selects: int
    folds: int
    accumulates: int
    bank_degree: int
    shared_cycles: int
    address_operations: int
    total: float

    def as_dict(self) -> dict[str, float]:
        """Return the counts by name."""
        return asdict(self)


def accumulates(problem: Problem, solution: Solution) -> int:
    """Count the condition holes whose condition is not constantly false; 0 for sketches without conditions."""
    count = 0
    for hole in problem.holes():
        if hole.kind == "keep":
            table = hole.options.table(solution.options[hole.name])
            count += bool((table >= 0).any())
    return count


def cost(
    problem: Problem, solution: Solution, code: ThreadCode, architecture: Architecture, *, element_bytes: int = WORD
) -> Cost:
    """Return the cost of a solution's code on an architecture; elements of shared memory have 4, 8 or 16 bytes."""
    shared = {literal.name for literal in code.inputs if literal.shared} | {name for name, _ in code.staged}
    shuffles = selects = folds = 0
    degrees: list[int] = []
    cycles = 0
    expressions = {store.index for store in code.stores}
    # Groups smaller than a warp stand side by side in shared memory, each with a copy of its own.
    lanes = np.arange(code.lanes)
    tile = code.shared_elements
    groups = np.arange(max(1, WARP // code.lanes))[:, None] * tile
    for instruction in code.instructions:
        match instruction:
            case Shuffle(_, lane):
                shuffles += 1
                expressions.add(lane)
            case Select(condition):
                selects += 1
                expressions.add(condition)
            case Combine():
                folds += 1
            case Put(_, index):
                expressions.add(index)
                at = np.broadcast_to(evaluate(index, {"lane": lanes}), lanes.shape)
                touched = (at[None, :] + groups).ravel()
                degrees.append(bank_degree(touched, size=element_bytes))
                cycles += passes(touched, size=element_bytes)
            case Integral(index):
                expressions.add(index)
            case Load(memory, index, guard):
                expressions.add(index)
                if guard is not None:
                    expressions.add(guard)
                if memory in shared:
                    at = np.broadcast_to(evaluate(index, {"lane": lanes}), lanes.shape)
                    touched = (at[None, :] + groups).ravel()
                    degrees.append(bank_degree(touched, size=element_bytes))
                    cycles += passes(touched, size=element_bytes)
            case _:
                pass
    arithmetic = sum(operations(one) for one in expressions if not isinstance(one, Number))
    total = shuffles * architecture.shuffle + selects * architecture.select + folds * architecture.combine
    total += cycles * architecture.shared_access + arithmetic * architecture.integer
    return Cost(
        shuffles, selects, folds, accumulates(problem, solution),
        max(degrees, default=0), cycles, arithmetic, total,
    )  # fmt: skip
