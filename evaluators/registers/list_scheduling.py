"""List scheduling of operations, one issued a cycle: how many registers live at once in the order that comes out.

The operation on the longest path to the end goes first.  With a budget of registers that holds while there are some
left; once there are none, what frees most of them goes first, and where nothing frees any, the text's order.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from evaluators.registers.operations import Operation, Operations


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
            waits.update(range(place))
            fence = place if form.waits else fence
        for value in one.defines:
            defined[value] = place
        result.append(waits)
    return result


class _Pool:
    """Operations that nothing holds back any more: those whose operands are there, and those that wait for them.

    Heaps keep what has been issued until it comes to their top.
    """

    def __init__(self, path: Sequence[int]) -> None:
        self.path = path
        self.issued = [False] * len(path)
        self.members: set[int] = set()
        self.ready: list[tuple[int, int]] = []
        self.waiting: list[tuple[int, int]] = []

    def add(self, place: int, when: int, cycle: int) -> None:
        """Take in an operation whose operands are there at cycle ``when``."""
        self.members.add(place)
        if when <= cycle:
            heapq.heappush(self.ready, (-self.path[place], place))
        else:
            heapq.heappush(self.waiting, (when, place))

    def longest(self, cycle: int) -> tuple[int, int]:
        """Return the ready operation on the longest path, and the cycle at which there is one."""
        while True:
            while self.waiting and (self.issued[self.waiting[0][1]] or self.waiting[0][0] <= cycle):
                place = heapq.heappop(self.waiting)[1]
                if not self.issued[place]:
                    heapq.heappush(self.ready, (-self.path[place], place))
            while self.ready and self.issued[self.ready[0][1]]:
                heapq.heappop(self.ready)
            if self.ready:
                return self.ready[0][1], cycle
            cycle = self.waiting[0][0]

    def issue(self, place: int) -> None:
        """Take an operation out."""
        self.members.discard(place)
        self.issued[place] = True


class _Pressure:
    """The registers that live, and by how much each operation makes them more."""

    def __init__(self, code: Operations) -> None:
        operations, weight = code.sequence, code.weight
        self.weight = weight
        self.uses = [set(one.uses) for one in operations]
        self.users: dict[int, list[int]] = {}
        self.needed: dict[int, int] = dict.fromkeys(code.live_out, 1)
        for place, values in enumerate(self.uses):
            for value in values:
                self.needed[value] = self.needed.get(value, 0) + 1
                self.users.setdefault(value, []).append(place)
        defined = {value for one in operations for value in one.defines}
        self.now = self.most = sum(weight[value] for value in self.needed if value not in defined)
        self.growth = [
            sum(weight[value] for value in one.defines)
            - sum(weight[value] for value in values if self.needed[value] == 1)
            for one, values in zip(operations, self.uses, strict=True)
        ]

    def issue(self, place: int, operation: Operation) -> None:
        """Account for an operation."""
        weight, needed = self.weight, self.needed
        for value in self.uses[place]:
            left = needed[value] = needed[value] - 1
            if not left:
                self.now -= weight[value]
                continue
            users = self.users[value]
            users.remove(place)
            if left == 1 and users:
                self.growth[users[0]] -= weight[value]
        dead = 0
        for value in operation.defines:
            if value in needed:
                self.now += weight[value]
            else:
                dead += weight[value]
        self.most = max(self.most, self.now + dead)


def scheduled(code: Operations, budget: int | None = None) -> int:
    """Return the most registers that live at once."""
    operations = code.sequence
    waits = _predecessors(operations)
    followers: list[list[int]] = [[] for _ in operations]
    for place, before in enumerate(waits):
        for one in before:
            followers[one].append(place)
    path = [0] * len(operations)
    for place in range(len(operations) - 1, -1, -1):
        path[place] = operations[place].latency + max([path[one] for one in followers[place]], default=0)
    pressure, pool = _Pressure(code), _Pool(path)
    missing = [len(before) for before in waits]
    when = [0] * len(operations)
    cycle = 0
    for place, number in enumerate(missing):
        if not number:
            pool.add(place, 0, 0)
    for _ in operations:
        chosen, cycle = pool.longest(cycle)
        if budget is not None and (pressure.now >= budget - 1 or pressure.now + pressure.growth[chosen] > budget):
            growth = pressure.growth
            best = min(pool.members, key=lambda place: (growth[place], -path[place], place))
            chosen = best if growth[best] <= 0 else min(pool.members)
            cycle = max(cycle, when[chosen])
        pool.issue(chosen)
        pressure.issue(chosen, operations[chosen])
        cycle += 1
        ends = cycle - 1 + operations[chosen].latency
        for one in followers[chosen]:
            missing[one] -= 1
            when[one] = max(when[one], ends)
            if not missing[one]:
                pool.add(one, when[one], cycle)
    return pressure.most
