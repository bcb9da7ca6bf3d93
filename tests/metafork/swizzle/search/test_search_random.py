"""The search against plain enumeration, on random problems whose goal is what one random choice computes."""

from itertools import product

import numpy as np
import pytest

from metafork.swizzle.grammar.sketch import Sketch
from metafork.swizzle.model.index import Number
from metafork.swizzle.model.options import OptionSet, first_of_each
from metafork.swizzle.model.problem import ZERO_CELL, Gather, Hole, execute, hole_table, solves
from metafork.swizzle.search.search import Search


def random_hole(sketch, random, name, argument, shape):
    """A hole whose options look at all cells, or at one axis only, and may drop cells."""
    cells, source = int(np.prod(shape)), int(np.prod(sketch.shape(argument)))
    grid = np.indices(shape).reshape(len(shape), -1)
    axis = int(random.integers(len(shape) + 1))
    locals_ = np.arange(cells) if axis == len(shape) else grid[axis]
    count = int(locals_.max()) + 1
    width = int(random.integers(2, 4))
    sources = random.integers(0, source, size=(cells, width))
    if random.random() < 0.5 and source == cells:
        sources[:, 0] = np.arange(cells)
    tables = random.integers(-1 if random.random() < 0.3 else 0, width, size=(int(random.integers(2, 6)), count))
    tables = tables[first_of_each(tables.astype(np.int16))].astype(np.int16)
    locals_ = locals_.astype(np.int32)
    if random.random() < 0.2:
        locals_[random.integers(cells)] = -1
    options = OptionSet(tables, lambda option: Number(option))
    hole = Hole(
        name, shape, argument, "random", options, locals_, sources.astype(np.int32), (0,), None, ("d0",), lambda _: ()
    )  # fmt: skip
    return sketch._add(hole)


def random_gather(sketch, random, name, argument, shape):
    table = random.integers(0, int(np.prod(sketch.shape(argument))), size=int(np.prod(shape)))
    if random.random() < 0.3:
        table[random.integers(table.size)] = ZERO_CELL
    return sketch._add(Gather(name, shape, (argument,), table.astype(np.int32), ()))


def random_problem(seed):
    random = np.random.default_rng(seed)
    sketch = Sketch(f"random{seed}")
    shape = tuple(int(one) for one in random.integers(1, 4, size=2))
    chains = []
    for chain in range(1 + int(random.random() < 0.4)):
        array = sketch.input("xy"[chain], (int(random.integers(2, 6)),))
        array = random_gather(sketch, random, f"g{chain}", array, shape)
        for number in range(int(random.integers(1, 3))):
            array = random_hole(sketch, random, f"h{chain}{number}", array, shape)
        chains.append(array)
    array = chains[0] if len(chains) == 1 else sketch.product("p", *chains)
    if random.random() < 0.6:
        array = random_hole(sketch, random, "late", array, shape)
    if random.random() < 0.6:
        array = sketch.fold("sum", array, "+" if random.random() < 0.7 or len(chains) > 1 else "*")
    sketch.goal(array, [0] * int(np.prod(sketch.shape(array))))
    problem = sketch.problem()
    choice = {hole.name: hole_table(hole, int(random.integers(len(hole.options)))) for hole in problem.holes()}
    made = execute(problem, choice)
    sketch.goals.clear()
    sketch.goal(array, made[array].tolist())
    if random.random() < 0.4:
        # A second goal, before or behind the first.
        others = [one.name for one in problem.statements if one.name != array]
        other = others[int(random.integers(len(others)))]
        sketch.goal(other, made[other].tolist())
    return sketch.problem()


def key(problem, options):
    return tuple(hole_table(hole, options[hole.name]).tobytes() for hole in problem.holes())


@pytest.mark.parametrize("start", range(0, 240, 40))
@pytest.mark.sampled(2)
def test_the_search_finds_what_enumeration_finds(start):
    several = 0
    for seed in range(start, start + 40):
        problem = random_problem(seed)
        names = [hole.name for hole in problem.holes()]
        wanted = set()
        for numbers in product(*(range(len(hole.options)) for hole in problem.holes())):
            options = dict(zip(names, numbers, strict=True))
            if solves(problem, {hole.name: hole_table(hole, options[hole.name]) for hole in problem.holes()}):
                wanted.add(key(problem, options))
        found = [key(problem, one.options) for one in Search(problem)]
        assert wanted
        assert set(found) == wanted, seed
        several += len(wanted) > 1
    assert several > 3
