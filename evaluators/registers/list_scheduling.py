"""List scheduling of operations, one issued a cycle: how many registers live at once in the order that comes out.

The operation on the longest path to the end goes first.  With a budget of registers that holds while there are some
left; once there are none, what frees most of them goes first, and where nothing frees any, the text's order.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from msgspec import Struct

from metafork.evaluators.registers.operations import Operation, Operations


def _predecessors(operations: Sequence[Operation]) -> list[set[int]]:
    """Return what each operation has to wait for.

    Values, barriers, branches, and accesses to the same space of which one is a store; loads through the read-only
    cache pass stores.
    """
    defined: dict[int, int] = {}
    result: list[set[int]] = []
    stored: dict[str, int] = {}
    loaded: dict[str, list[int]] = {}
    fence = -1
    # The last operation that waited for all before it: who waits for it waits for them.
    joint = 0
    for place, one in enumerate(operations):
        form = one.instruction.form
        waits = {defined[value] for value in one.uses if value in defined}
        if fence >= 0:
            waits.add(fence)
        if form.loads and not one.instruction.cached:
            space = form.space
            if space in stored:
                waits.add(stored[space])
            loaded.setdefault(space, []).append(place)
        elif form.stores:
            space = form.space
            waits.update(loaded.pop(space, ()))
            if space in stored:
                waits.add(stored[space])
            stored[space] = place
        elif form.waits or form.opcode == "bra":
            waits.update(range(joint, place))
            joint = place
            fence = place if form.waits else fence
        for value in one.defines:
            defined[value] = place
        result.append(waits)
    return result


class Dependences(Struct, frozen=True):
    """What every schedule of a region's operations needs to know.

    Of each operation: ``followers``, those that wait for it; ``missing``, for how many it waits; ``rank``, its place
    when they are sorted by their path to the end, the longest first (``ranked`` is the way back); ``uses`` and
    ``defines``, its values that take registers.
    """

    code: Operations
    followers: list[list[int]]
    missing: list[int]
    rank: list[int]
    ranked: list[int]
    uses: list[list[int]]
    defines: list[list[int]]


def dependences(code: Operations) -> Dependences:
    """Find out what waits for what."""
    operations, weight = code.sequence, code.weight
    waits = _predecessors(operations)
    followers: list[list[int]] = [[] for _ in operations]
    path = [one.latency for one in operations]
    rests = [0] * len(operations)
    for place in range(len(operations) - 1, -1, -1):
        path[place] += rests[place]
        for before in waits[place]:
            followers[before].append(place)
            rests[before] = max(rests[before], path[place])
    ranked = sorted(range(len(operations)), key=path.__getitem__, reverse=True)
    rank = [0] * len(operations)
    for position, place in enumerate(ranked):
        rank[place] = position
    return Dependences(
        code,
        followers,
        [len(before) for before in waits],
        rank,
        ranked,
        [[value for value in set(one.uses) if weight[value]] for one in operations],
        [[value for value in one.defines if weight[value]] for one in operations],
    )


class _Pool:
    """Operations that nothing holds back any more: those whose operands are there, and those that wait for them.

    Heaps keep what has been issued until it comes to their top.  A pair of a number and a rank is one integer in them,
    ``number * size + rank``, which is compared sooner.
    """

    def __init__(self, known: Dependences) -> None:
        self.rank, self.ranked, self.size = known.rank, known.ranked, len(known.ranked)
        self.issued = [False] * self.size
        self.ready: list[int] = []
        self.waiting: list[int] = []

    def add(self, place: int, when: int, cycle: int) -> None:
        """Take in an operation whose operands are there at cycle ``when``."""
        if when <= cycle:
            heapq.heappush(self.ready, self.rank[place])
        else:
            heapq.heappush(self.waiting, when * self.size + self.rank[place])

    def longest(self, cycle: int) -> tuple[int, int]:
        """Return the ready operation on the longest path, and the cycle at which there is one."""
        waiting, ready, issued, ranked = self.waiting, self.ready, self.issued, self.ranked
        while True:
            while waiting:
                when, rank = divmod(waiting[0], self.size)
                gone = issued[ranked[rank]]
                if when > cycle and not gone:
                    break
                heapq.heappop(waiting)
                if not gone:
                    heapq.heappush(ready, rank)
            while ready and issued[ranked[ready[0]]]:
                heapq.heappop(ready)
            if ready:
                return ranked[ready[0]], cycle
            cycle = waiting[0] // self.size

    def issue(self, place: int) -> None:
        """Take an operation out."""
        self.issued[place] = True


class _ThriftyPool(_Pool):
    """A pool that also knows which of its operations makes the live registers least more."""

    def __init__(self, known: Dependences, growth: Sequence[int]) -> None:
        super().__init__(known)
        self.growth = growth
        self.inside = [False] * self.size
        self.by_growth: list[int] = []
        self.by_text: list[int] = []

    def add(self, place: int, when: int, cycle: int) -> None:
        super().add(place, when, cycle)
        self.inside[place] = True
        heapq.heappush(self.by_text, place)
        self.grows_less(place)

    def grows_less(self, place: int) -> None:
        """Note that the growth of an operation is another one now; what was noted before comes later in the heap."""
        if self.inside[place]:
            heapq.heappush(self.by_growth, self.growth[place] * self.size + self.rank[place])

    def thriftiest(self) -> int:
        """Return what frees most registers, of such the one on the longest path; the text's first if nothing frees."""
        while self.issued[self.ranked[self.by_growth[0] % self.size]]:
            heapq.heappop(self.by_growth)
        best = self.ranked[self.by_growth[0] % self.size]
        if self.growth[best] <= 0:
            return best
        while self.issued[self.by_text[0]]:
            heapq.heappop(self.by_text)
        return self.by_text[0]


class _Pressure:
    """The registers that live."""

    def __init__(self, known: Dependences) -> None:
        code = known.code
        self.weight = code.weight
        self.uses, self.defines = known.uses, known.defines
        self.needed = [0] * len(code.weight)
        for value in code.live_out:
            self.needed[value] = 1
        for values in self.uses:
            for value in values:
                self.needed[value] += 1
        before = {value for value, number in enumerate(self.needed) if number}.difference(*self.defines)
        self.now = self.most = sum([self.weight[value] for value in before])

    def issue(self, place: int) -> None:
        """Account for an operation."""
        weight, needed = self.weight, self.needed
        for value in self.uses[place]:
            needed[value] -= 1
            if not needed[value]:
                self.now -= weight[value]
        dead = 0
        for value in self.defines[place]:
            if needed[value]:
                self.now += weight[value]
            else:
                dead += weight[value]
        if self.now + dead > self.most:
            self.most = self.now + dead


class _ThriftyPressure(_Pressure):
    """The registers that live, of which there is a budget, and by how much each operation makes them more."""

    def __init__(self, known: Dependences, budget: int) -> None:
        super().__init__(known)
        self.budget = budget
        weight, needed = self.weight, self.needed
        self.growth = [
            sum([weight[value] for value in defines]) - sum([weight[value] for value in uses if needed[value] == 1])
            for uses, defines in zip(self.uses, self.defines, strict=True)
        ]
        # The places of the operations that have yet to use a value, added up: once it is one, that is its place.
        self.users = [0] * len(weight)
        for place, values in enumerate(self.uses):
            for value in values:
                self.users[value] += place
        self.live_out = known.code.live_out
        self.pool = _ThriftyPool(known, self.growth)

    def forbids(self, place: int) -> bool:
        """Say whether the budget is used up, or would be by an operation."""
        return self.now >= self.budget - 1 or self.now + self.growth[place] > self.budget

    def issue(self, place: int) -> None:
        super().issue(place)
        for value in self.uses[place]:
            self.users[value] -= place
            if self.needed[value] == 1 and value not in self.live_out:
                last = self.users[value]
                self.growth[last] -= self.weight[value]
                self.pool.grows_less(last)


def scheduled(known: Dependences, budget: int | None = None, *, enough: int | None = None) -> int:
    """Return the most registers that live at once; ``enough`` or more where that many do."""
    thrifty = None if budget is None else _ThriftyPressure(known, budget)
    pressure = thrifty or _Pressure(known)
    pool = thrifty.pool if thrifty else _Pool(known)
    missing = list(known.missing)
    when = [0] * len(missing)
    cycle = 0
    for place, number in enumerate(missing):
        if not number:
            pool.add(place, 0, 0)
    for _ in missing:
        if enough is not None and pressure.most >= enough:
            break
        chosen, cycle = pool.longest(cycle)
        if thrifty and thrifty.forbids(chosen):
            chosen = thrifty.pool.thriftiest()
            cycle = max(cycle, when[chosen])
        pool.issue(chosen)
        pressure.issue(chosen)
        cycle += 1
        ends = cycle - 1 + known.code.sequence[chosen].latency
        for one in known.followers[chosen]:
            missing[one] -= 1
            if when[one] < ends:
                when[one] = ends
            if not missing[one]:
                pool.add(one, when[one], cycle)
    return pressure.most
