"""The vector instruction vmux, where a hole asks for it."""

import numpy as np
import pytest

from metafork.ir.messages.source import Source
from metafork.swizzle.grammar.vector import cases, pairings
from metafork.swizzle.language.elaborate import load
from metafork.swizzle.model.index import evaluate, to_text
from metafork.swizzle.search.search import solutions
from tests.metafork.swizzle.running import check_c

MIXED = """
    x: [8] = input
    r: [2, 4] = [[x[0], x[1], x[2], x[3]], [x[4], x[5], x[6], x[7]]]
    s: [3, 4] = ?vectorMUX(r)
    t: [4, 4] = ?vectorMUX(s)
    out: [4] = \\i. t[3, i]
    goal out = \\i. i == 0 ? x[5] : i == 1 ? x[4] : x[i]
"""


def test_a_register_of_two_parts(tmp_path):
    text = MIXED.replace("    t: [4, 4] = ?vectorMUX(s)\n", "").replace("t[3, i]", "s[2, i]")
    text = text.replace("i == 0 ? x[5] : i == 1 ? x[4] : x[i]", "i < 1 ? x[i] : x[4 + i]")
    assert solutions(load(Source("plain.swz", text.replace("MUX", "")))) == []
    problem = load(Source("mux.swz", text.replace("MUX", "{mux}")))
    (only,) = solutions(problem)
    (hole,) = problem.holes()
    assert to_text(hole.options.expression(only.options["s"])) == "vmux(r0, r1, 1)"
    check_c(problem, [only], tmp_path)


def test_behind_another_instruction(tmp_path):
    """x5 x4 x2 x3 would take a swap and a mux: no pair of instructions swaps within half a register."""
    assert solutions(load(Source("two.swz", MIXED.replace("MUX", "{mux}")))) == []
    reachable = MIXED.replace("MUX", "{mux}").replace("i == 0 ? x[5] : i == 1 ? x[4] : x[i]", "i < 2 ? x[6 + i] : x[i]")
    problem = load(Source("two.swz", reachable))
    found = solutions(problem)
    assert found
    check_c(problem, found, tmp_path)


@pytest.mark.parametrize("mux", [False, True])
def test_instructions_are_spelled_as_they_read(mux):
    registers, lanes = 3, 4
    options = pairings(registers, lanes, mux=mux)
    names = [to_text(options.expression(option)) for option in range(len(options))]
    assert any(name.startswith("vmux") for name in names) == mux
    values = {"d0": np.full(lanes, registers), "d1": np.arange(lanes)}
    for option in range(len(options)):
        read, open_ = np.full(lanes, -1), np.ones(lanes, dtype=bool)
        for case in cases(options.expression(option), registers, lanes):
            guard = 1 if case.guard is None else evaluate(case.guard, values)
            holds = open_ & (np.broadcast_to(guard, lanes) != 0)
            row, element = (np.broadcast_to(evaluate(index, values), lanes) for index in case.read.indices)
            read[holds] = (row * lanes + element)[holds]
            open_ &= ~holds
        assert read.tolist() == options.table(option).tolist(), names[option]
