"""JSON: solutions with their expressions, costs and, where they are code of threads, instructions ready to lower.

An instruction names its operation, its operands by number, and index expressions in C over ``lane``; each is one or a
few LLVM instructions, a shuffle being ``llvm.nvvm.shfl.sync.idx`` over groups of ``lanes`` threads.
"""

from __future__ import annotations

import json
from typing import Any, assert_never

from metafork.swizzle.model.index import to_c, to_text
from metafork.swizzle.model.problem import Problem
from metafork.swizzle.output.cost import Cost
from metafork.swizzle.output.lowering import Combine, Instruction, Load, Select, Shuffle, ThreadCode, Zero
from metafork.swizzle.search.search import Solution, Statistics

FORMAT, VERSION = "metafork-swizzle", 1


def print_json(
    problem: Problem, solutions: list[tuple[Solution, ThreadCode | None, Cost | None]], statistics: Statistics
) -> str:  # fmt: skip
    """Return the document; ``code`` and ``cost`` are null for sketches that have no thread code."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "sketch": problem.name,
        "statistics": {
            "options": statistics.options,
            "statesBuilt": statistics.states_built,
            "statesPruned": statistics.states_pruned,
            "droppedAhead": statistics.dropped_ahead,
            "ineffectiveness": statistics.ineffectiveness if statistics.states_on_solutions else None,
        },
        "solutions": [_solution(problem, *one) for one in solutions],
    }
    return json.dumps(document, indent=2) + "\n"


def _solution(problem: Problem, solution: Solution, code: ThreadCode | None, cost: Cost | None) -> dict[str, Any]:
    holes = {
        hole.name: {
            "kind": hole.kind,
            "option": solution.options[hole.name],
            "expression": to_text(hole.options.expression(solution.options[hole.name])),
        }
        for hole in problem.holes()
    }
    return {
        "holes": holes,
        "cost": None if cost is None else cost.as_dict(),
        "code": None if code is None else _code(code),
    }


def _code(code: ThreadCode) -> dict[str, Any]:
    return {
        "lanes": code.lanes,
        "inputs": [{"name": one.name, "shape": list(one.shape), "step": one.step} for one in code.inputs],
        "instructions": [_instruction(code, one) for one in code.instructions],
        "stores": [{"index": to_c(store.index, code.ranges), "value": store.value} for store in code.stores],
    }


def _instruction(code: ThreadCode, instruction: Instruction) -> dict[str, Any]:
    match instruction:
        case Load(memory, index, guard):
            condition = None if guard is None else to_c(guard, code.ranges)
            return {"op": "load", "memory": memory, "index": to_c(index, code.ranges), "guard": condition}
        case Shuffle(value, lane):
            return {"op": "shuffle", "value": value, "lane": to_c(lane, code.ranges)}
        case Select(condition, yes, no):
            return {"op": "select", "condition": to_c(condition, code.ranges), "yes": yes, "no": no}
        case Zero():
            return {"op": "zero"}
        case Combine(op, left, right):
            return {"op": op, "left": left, "right": right}
        case _:
            assert_never(instruction)
