"""Functions of CUDA and of C's library that no schedule can call, by what they are for, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Sequence

from metafork.frontend.text.other_languages.advice import Advice
from metafork.frontend.text.other_languages.words import element_index
from metafork.frontend.text.vocabulary import MATH_FUNCTIONS, PRINTING_FUNCTIONS, SCANNING_FUNCTIONS

_ATOMIC = {
    "atomicAdd": "{0} += {1}",
    "atomicSub": "{0} -= {1}",
    "atomicAnd": "{0} &= {1}",
    "atomicOr": "{0} |= {1}",
    "atomicXor": "{0} ^= {1}",
    "atomicMax": "{0} = {0} > {1} ? {0} : {1}",
    "atomicMin": "{0} = {0} < {1} ? {0} : {1}",
}
_BARRIERS = frozenset({"__syncthreads", "__syncwarp", "__threadfence", "__threadfence_block", "barrier"})
_CUDA = re.compile(
    r"atomic[A-Z]\w*|__(shfl|ballot|any|all|match|reduce|activemask|syncthreads|threadfence|ldg|ldcg)\w*"
)
"""Functions of CUDA besides those that have a counterpart."""
_PRINTING = (PRINTING_FUNCTIONS - {"assert"}) | {"putc", "fputc", "fwrite", "vprintf", "dprintf"}
_READING = SCANNING_FUNCTIONS | {"getchar", "fgets", "fgetc", "getc", "fread", "getline"}
_MEMORY = frozenset({"malloc", "calloc", "realloc", "aligned_alloc", "alloca", "cudaMalloc", "posix_memalign"})
_RANDOM = frozenset(
    {"rand", "random", "drand48", "lrand48", "mrand48", "rand_r", "erand48", "curand", "curand_uniform"}
)
_ENDING = frozenset({"abort", "exit", "_Exit", "quick_exit", "__trap"})
_CLOCKS = frozenset({"clock", "clock64", "time", "clock_gettime", "gettimeofday", "omp_get_wtime"})

_ON_THE_GPU = "a schedule runs on the GPU."


def refused_call(name: str, arguments: Sequence[str], before: str) -> Advice | None:
    """Return what is said of a call; ``None`` for a function of no such kind.  ``before`` is the text in front."""
    of_cuda = f"`{name}` is a function of CUDA"
    here = f"`{name}` cannot be called in a schedule"
    if name in _BARRIERS:
        return Advice(
            of_cuda, "threads of a block wait for each other between two loops of threads.", _second_loop(before)
        )
    if name in _ATOMIC and len(arguments) == 2:
        update = _ATOMIC[name].format(_led_to(arguments[0]), arguments[1])
        reason = "in a schedule an atomic update is an assignment with `meta_atomic` in front, and has no value."
        return Advice(of_cuda, reason, f"write a statement of its own:\nmeta_atomic {update};")
    if name == "__ldg" and len(arguments) == 1:
        return Advice(of_cuda, "an element is read by its index.", f"write `{_led_to(arguments[0])}`.")
    if name.startswith("__") and name[2:] in MATH_FUNCTIONS:
        return Advice(
            of_cuda, "a schedule calls functions of `math.h`.", f"write `{name[2:]}({', '.join(arguments)})`."
        )
    if name in ("rsqrt", "rsqrtf") and len(arguments) == 1:
        one, root = ("1.0f", "sqrtf") if name == "rsqrtf" else ("1.0", "sqrt")
        return Advice(of_cuda, "a schedule calls functions of `math.h`.", f"write `{one} / {root}({arguments[0]})`.")
    if name.startswith("atomic") and _CUDA.fullmatch(name):
        reason = (
            "atomic updates are `+=`, `-=`, `&=`, `|=`, `^=`, the greater and the smaller of two, and have no value."
        )
        return Advice(
            of_cuda, reason, "use one of these, `meta_atomic x[0] += 1;`, or give each thread its own element."
        )
    if _CUDA.fullmatch(name):
        reason = "threads of a block exchange values through an array of the block."
        way = "declare an array between the grid's loop and the threads' loops; write it in one, read it in the next."
        return Advice(of_cuda, reason, way)
    if re.fullmatch(r"(cuda|cu|hip)[A-Z]\w*", name) and name not in _MEMORY and name != "cudaFree":
        return Advice(of_cuda, "copies and launches are generated, and wait for each other.", "remove the line.")
    if name in _PRINTING:
        way = (
            "remove the line. To see values, store them in an array and print that array after the schedule. "
            "`METAFORK_TRACE=1` prints which kernel runs."
        )
        return Advice(here, f"{_ON_THE_GPU} It computes on arrays, and cannot print.", way)
    if name in _READING:
        return Advice(
            here, f"{_ON_THE_GPU} It cannot read input.", "read the values into an array before the schedule."
        )
    if name in _ENDING:
        way = (
            "remove the line. Check the array before the schedule, or store a flag in an array and check it afterwards."
        )
        return Advice(here, f"{_ON_THE_GPU} A thread cannot end the program.", way)
    if name in _MEMORY or name in ("free", "cudaFree"):
        reason = "the memory of a kernel is fixed before it runs."
        return Advice(here, reason, "declare an array of the thread, such as `float t[4];`.", "allocation")
    if name in _RANDOM:
        reason = f"`{name}` gives one sequence of numbers, one after the other. Threads run at the same time."
        index = element_index(before)
        way = (
            "compute the number from the index. Write this function at the beginning of the file, "
            f"`mix({index})` in place of `{name}(...)`, and 4294967295u in place of RAND_MAX:\n{_MIX}"
        )
        return Advice(here, reason, way, "random numbers")
    if name in _CLOCKS:
        return Advice(here, f"{_ON_THE_GPU} It has no clock.", "remove the call, and measure time around the schedule.")
    return None


_MIX = "static unsigned mix(unsigned v) { v ^= v >> 16; v *= 0x7feb352du; v ^= v >> 15; return v; }"


def allocated(name: str, element: str, function: str, arguments: Sequence[str]) -> Advice | None:
    """Return what is said of a pointer that a function gives memory of its own; ``None`` for another function."""
    of = refused_call(function, arguments, "") if function in _MEMORY else None
    if of is None:
        return None
    factors = [part.strip() for text in arguments for part in text.split("*")]
    counts = [part for part in factors if not part.startswith("sizeof") and part not in ("NULL", "0")] or ["1"]
    size = " * ".join(counts)
    also = ""
    if not all(re.fullmatch(r"\d+", part) for part in counts):
        also, size = f", with a number for `{size}`", "4"
    return Advice(
        of.message,
        of.reason,
        f"declare an array of the thread{also}, and remove `free({name});`:\n{element} {name}[{size}];",
        of.cause,
    )


def _led_to(pointer: str) -> str:
    """Return the element that an argument leads to: ``a[i]`` of ``&a[i]``, ``a[i]`` of ``a + i``, ``a[0]`` of ``a``."""
    pointer = pointer.strip()
    if pointer.startswith("&"):
        inner = pointer[1:].strip()
        return inner[1:-1] if re.fullmatch(r"\([^()]*\)", inner) else inner
    if found := re.fullmatch(r"(\w+)\s*\+\s*(.+)", pointer):
        return f"{found[1]}[{found[2]}]"
    return f"{pointer}[0]"


def _second_loop(before: str) -> str:
    """Return how threads wait: the loop around ends, and one with the same head follows."""
    heads = re.findall(r"meta_for\s*\((?:[^()]|\([^()]*\))*\)", before)
    head = heads[-1] if heads else "meta_for (int u = 0; u < B; u++)"
    return f"end the loop here, and begin a second one. Write in place of this line:\n}}\n{head} {{"
