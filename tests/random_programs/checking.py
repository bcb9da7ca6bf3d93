"""Check groups of random programs: each optimized, its tree proved, all its leaves run against the serial elision."""

from random import Random

from metafork.comprehensive.verification import Options, Verification, verify
from tests.random_programs.c_forms import FormGenerator
from tests.random_programs.complex_numbers import ComplexGenerator
from tests.random_programs.constructs import ConstructGenerator, SumGenerator
from tests.random_programs.elements import ElementGenerator
from tests.random_programs.everyday import EverydayGenerator
from tests.random_programs.generator import Generator, MixedGenerator, StructureGenerator, file_text
from tests.random_programs.pointers import PointerGenerator
from tests.random_programs.row_tables import TableGenerator
from tests.random_programs.small_floats import SmallFloatGenerator
from tests.random_programs.strips import StripGenerator

# The counters without registers need no LLVM and are quick; some groups use everything.
QUICK = ("threads_per_block", "shared_memory")
EVERYTHING = 0.2


KINDS: dict[str, type[Generator]] = {
    "plain": Generator,
    "structures": StructureGenerator,
    "mixed": MixedGenerator,
    "complex": ComplexGenerator,
    "constructs": ConstructGenerator,
    "sums": SumGenerator,
    "pointers": PointerGenerator,
    "tables": TableGenerator,
    "strips": StripGenerator,
    "elements": ElementGenerator,
    "everyday": EverydayGenerator,
    "forms": FormGenerator,
    "small": SmallFloatGenerator,
}


def check(
    seeds: list[int],
    points: int = 12,
    dataflow_seconds: float = 0,
    kind: str = "plain",
    optimization: str | None = None,
) -> Verification:
    """Verify the programs of some seeds as one file; proofs of dataflow take most of the time where they are tried."""
    return check_text(file_text(seeds, KINDS[kind]), seeds[0], points, dataflow_seconds, kind, optimization)


def check_text(
    text: str,
    seed: int,
    points: int = 12,
    dataflow_seconds: float = 0,
    kind: str = "plain",
    optimization: str | None = None,
) -> Verification:
    """Verify a file with the options that ``seed`` draws, unless the compiler's ``optimization`` is given.

    The programs of the kind ``structures`` read arrays of structures, and warps move them through their registers;
    indices of the kind ``mixed`` have several types; those of the kind ``constructs`` call functions, and those of the
    kind ``sums`` add up floating-point numbers; those of the kind ``pointers`` take pointers for arrays; those of the
    kind ``everyday`` have dead scalars, empty loops, structures in each other, unsigned numbers and pragmas in between;
    those of the kind ``forms`` have pointers that walk, ``switch``, arrays in front and what else people write; those
    of the kind ``small`` have 16-bit floating-point numbers in memory, and sums in any order.
    """
    random = Random(seed)
    counters = None if random.random() < EVERYTHING else QUICK
    drawn = random.choice(("-O0", "-O0", "-O0", "-O2"))
    optimization = optimization or drawn
    options = Options(points=points, seed=seed, jobs=2, optimization=optimization, dataflow_seconds=dataflow_seconds)
    if kind == "structures":
        return verify(text, counters=(*QUICK, "bank_degree"), strategies=("swizzle",), options=options, machine="all")
    every = ("+register_pressure",)
    sums = kind in ("sums", "small")
    return verify(text, counters=counters, strategies=every, machine="all", reassociate=sums, options=options)
