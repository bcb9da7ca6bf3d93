"""List schedules: those of the heaps are those that a search of all operations makes at each step."""

import random

import pytest

from metafork.evaluators.registers.list_scheduling import dependences, scheduled
from metafork.evaluators.registers.operations import operations
from metafork.evaluators.registers.pressure import weights
from tests.evaluators.registers.ptx_modules import code_of_body


def random_region(seed):
    """Straight-line code that loads, adds, multiplies, stores, waits at barriers and branches; the values it leaves."""
    draw = random.Random(seed)
    values, lines = ["%r0"], ["\tmov.u32 \t%r0, %tid.x;", "\tmov.u64 \t%rd1, %clock64;"]
    for number in range(1, draw.randrange(10, 80)):
        one, other, fresh = draw.choice(values), draw.choice(values), f"%r{number}"
        kind = draw.random()
        if kind < 0.3:
            lines.append(f"\tld.{draw.choice(('global', 'global.nc', 'shared'))}.b32 \t{fresh}, [%rd1+{4 * number}];")
        elif kind < 0.8:
            lines.append(f"\t{draw.choice(('add.s32', 'mul.rn.f32', 'div.rn.f32'))} \t{fresh}, {one}, {other};")
        elif kind < 0.9:
            lines.append(f"\tst.{draw.choice(('global', 'shared'))}.b32 \t[%rd1], {one};")
            continue
        elif kind < 0.93:
            lines.append("\tbar.sync \t0;")
            continue
        else:
            lines.append(f"\t@%p1 mov.b32 \t{one}, {other};")
            continue
        values.append(fresh)
    code = code_of_body("\n".join([*lines, "\t@%p1 bra \t$L;", "$L:", ""]))
    body = list(code.instructions())
    branch = body.pop(-2)
    for _ in range(draw.randrange(3)):
        body.insert(draw.randrange(2, len(body)), branch)
    left = draw.sample(values, len(values) // 4)
    return operations(body, frozenset(map(code.names.index, left)), weights(code))


def must_wait(operations):
    """Return for each operation those before it that it waits for."""
    result = []
    for place, one in enumerate(operations):
        form, waits = one.instruction.form, set()
        for earlier, other in enumerate(operations[:place]):
            before = other.instruction.form
            in_memory = before.space == form.space and not (one.instruction.cached or other.instruction.cached)
            if (
                set(one.uses) & set(other.defines)
                or form.waits
                or form.opcode == "bra"
                or before.waits
                or (in_memory and ((form.stores and (before.loads or before.stores)) or (form.loads and before.stores)))
            ):
                waits.add(earlier)
        result.append(waits)
    return result


def most_by_search(code, budget):
    """Return the most registers that live at once; each step looks at all operations."""
    left, waits = set(range(len(code.sequence))), must_wait(code.sequence)
    latency = [one.latency for one in code.sequence]
    path = list(latency)
    for place in reversed(range(len(path))):
        path[place] += max((path[one] for one in left if place in waits[one]), default=0)
    ends = {}

    def live():
        used = code.live_out.union(*(code.sequence[one].uses for one in left))
        return used.difference(*(code.sequence[one].defines for one in left))

    def total(values):
        return sum(code.weight[value] for value in values)

    def growth(place):
        rest = code.live_out.union(*(code.sequence[one].uses for one in left if one != place))
        return total(code.sequence[place].defines) - total(set(code.sequence[place].uses) - rest)

    most, cycle = total(live()), 0
    while left:
        free = {place: max((ends[one] for one in waits[place]), default=0) for place in left if not waits[place] & left}
        cycle = max(cycle, min(free.values()))
        chosen = min((-path[place], place) for place in free if free[place] <= cycle)[1]
        now = total(live())
        if budget is not None and (now >= budget - 1 or now + growth(chosen) > budget):
            best = min(free, key=lambda place: (growth(place), -path[place], place))
            chosen = best if growth(best) <= 0 else min(free)
            cycle = max(cycle, free[chosen])
        left.remove(chosen)
        ends[chosen] = cycle + latency[chosen]
        cycle += 1
        most = max(most, total(live().union(code.sequence[chosen].defines)))
    return most


@pytest.mark.parametrize("seed", range(30))
def test_the_order_is_that_of_a_search(seed):
    code = random_region(seed)
    known = dependences(code)
    for budget in (None, 4, 8, 16):
        most = most_by_search(code, budget)
        assert scheduled(known, budget) == most
        for enough in (most - 2, most, most + 1):
            assert min(scheduled(known, budget, enough=enough), enough) == min(most, enough)
