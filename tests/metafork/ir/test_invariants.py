"""A broken program or kernel is noticed, whichever invariant a pass broke."""

from typing import ClassVar

import pytest
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.comprehensive.optimize import discuss
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.invariants import InvariantError, check_kernel, check_program
from metafork.ir.mapping import Layout
from metafork.ir.program import (
    Array,
    Assign,
    Barrier,
    Binary,
    BlockArray,
    Break,
    Declare,
    Element,
    For,
    IntConst,
    Phase,
    PrivateArray,
    Var,
    binary,
)
from metafork.lowering.lowering import lower
from metafork.strategies.strategy import Applied, Strategy
from tests.metafork.interpreter import program
from tests.metafork.programs import JACOBI, MATADD, MATMUL, TRANSPOSE

A = Element("a", (IntConst(0), IntConst(0)), ScalarType.INT)
INT, FLOAT, LONG = ScalarType.INT, ScalarType.FLOAT, ScalarType.LONG


@pytest.mark.parametrize("text", [JACOBI, MATADD, MATMUL, TRANSPOSE])
def test_what_the_front_end_and_the_lowering_make_is_right(text):
    check_program(program(text))
    check_kernel(lower(program(text), "k"))


def in_thread(*statements):
    subject = program(TRANSPOSE)
    (phase,) = subject.body
    return replace(subject, body=(replace(phase, body=(*statements, *phase.body)),))


def at_block_level(*statements):
    subject = program(TRANSPOSE)
    return replace(subject, body=(*statements, *subject.body))


PHASE = program(TRANSPOSE).body[0]
BROKEN = {
    "an unknown scalar": (in_thread(Declare("x", INT, Var("nothing"))), "nothing is no scalar"),
    "a scalar of another type": (in_thread(Declare("x", INT, Var("N", LONG))), "N is int, not long"),
    "a name declared twice": (in_thread(Declare("x", INT, None), Declare("x", INT, None)), "declared twice"),
    "an unknown array": (in_thread(Declare("x", INT, replace(A, array="z"))), "z is no array"),
    "an index too few": (in_thread(Declare("x", INT, replace(A, indices=(IntConst(0),)))), "2 extents and 1 indices"),
    "elements of another type": (in_thread(Declare("x", FLOAT, replace(A, type=FLOAT))), "elements of a are int"),
    "an index that is no integer": (
        in_thread(Declare("x", INT, replace(A, indices=(IntConst(0), replace(Var("y"), type=FLOAT))))),
        "an index of a is no integer",
    ),
    "a sum of another type": (
        in_thread(Declare("x", LONG, Binary("+", Var("N"), IntConst(1), LONG))),
        "\\+ has the type long",
    ),
    "a parameter that is assigned": (in_thread(Assign(Var("N"), "", IntConst(1))), "N is assigned"),
    "a thread's number assigned": (
        in_thread(Assign(Var(PHASE.threads[0].var), "", IntConst(1))),
        "is assigned",
    ),
    "a jump out of nothing": (in_thread(Break()), "in no loop"),
    "a jump out of a phase": (
        at_block_level(For(None, None, None, (replace(PHASE, body=(Break(),)),))),
        "in no loop",
    ),
    "a phase in a phase": (in_thread(PHASE), "stands where none may"),
    "a phase of other dimensions": (at_block_level(Phase(PHASE.threads[:1], ())), "stands where none may"),
    "an array of the block in a thread": (
        in_thread(BlockArray(Array("t", INT, (IntConst(4),)))),
        "where there is no block level",
    ),
    "an array of a thread outside of threads": (
        at_block_level(PrivateArray(Array("t", INT, (IntConst(4),)))),
        "outside of thread code",
    ),
    "an array of a thread with an extent that varies": (
        in_thread(PrivateArray(Array("t", INT, (Var(PHASE.threads[0].var),)))),
        "no constant",
    ),
    "a barrier": (at_block_level(Barrier()), "stands in a program"),
    "an array in shared memory that is not there": (program(TRANSPOSE).mapped(cached=("z",)), "names z"),
    "an array in two places": (program(TRANSPOSE).mapped(cached=("a",), transposed=("a",)), "a stands for two things"),
    "a layout of nothing": (program(TRANSPOSE).mapped(cached=(), layouts=(("a", Layout("row")),)), "names a"),
    "no threads": (replace(program(TRANSPOSE), striding=0), "0 threads"),
    "a value with the name of an array": (
        replace(program(TRANSPOSE), arrays=(*program(TRANSPOSE).arrays, Array("N", INT, (IntConst(1),)))),
        "N stands for two things",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_program_is_noticed(name):
    broken, message = BROKEN[name]
    with pytest.raises(InvariantError, match=message):
        check_program(broken)


def kernel_with(*statements, **fields):
    kernel = lower(program(MATADD), "k")
    return replace(kernel, body=(*statements, *kernel.body), **fields)


def test_a_broken_kernel_is_noticed():
    kernel = lower(program(MATADD), "k")
    name = kernel.memories[0].name
    element = kernel.memories[0].element
    two = Element(name, (IntConst(0), IntConst(0)), element)
    written = next(one for one in kernel.memories if one.read_only)
    for broken, message in (
        (kernel_with(Declare("x", element, two)), "1 extents and 2 indices"),
        (kernel_with(Phase((), ())), "stands where none may"),
        (kernel_with(BlockArray(Array("t", INT, (IntConst(4),)))), "no block level"),
        (kernel_with(Assign(Var("threadIdx.x", ScalarType.UNSIGNED_INT), "", IntConst(0))), "is assigned"),
        (
            kernel_with(Assign(Element(written.name, (IntConst(0),), written.element), "", IntConst(0))),
            f"{written.name} is assigned",
        ),
        (replace(kernel, memories=(*kernel.memories, kernel.memories[0])), "two things"),
        (replace(kernel, memories=kernel.memories[1:]), f"{name} is no array"),
    ):
        with pytest.raises(InvariantError, match=message):
            check_kernel(broken)


class Breaking(Strategy, frozen=True):
    """A strategy that forgets to declare what it uses."""

    name: str = "breaking"
    improves: frozenset[str] = frozenset({"shared_memory"})
    at_leaf: ClassVar[bool] = True

    def apply(self, version, analyses):
        del analyses
        subject = version.program
        broken = replace(subject, assumptions=(*subject.assumptions, binary("<", Var("forgotten"), IntConst(3))))
        return Applied(replace(version, program=broken), "broke it")


def test_a_strategy_that_breaks_a_program_is_named(monkeypatch):
    from metafork.evaluators.shared_memory import COUNTER

    with pytest.raises(InvariantError, match="breaking made a wrong program: forgotten is no scalar"):
        discuss(program(JACOBI), [COUNTER], [Breaking()], analyses=Analyses())
    monkeypatch.delenv("METAFORK_VERIFY")
    tree = discuss(program(JACOBI), [COUNTER], [], analyses=Analyses())
    assert tree.leaves
