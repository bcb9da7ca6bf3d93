"""CUDA: a device function that works on one tile, and a kernel in which every group of threads takes a tile.

Shuffles are ``__shfl_sync`` over the whole warp, with the group as their width, so every thread of a warp takes part
also where the number of groups is odd: a group without a tile works on the last one and stores nothing.  Compiled by a
C++ compiler, the same text runs on the CPU build (``<metafork/device.h>``).
"""

from __future__ import annotations

from math import prod
from typing import assert_never

from metafork.swizzle.model.index import to_c
from metafork.swizzle.model.problem import Literal
from metafork.swizzle.output.lowering import (
    Combine,
    Instruction,
    Load,
    NotLowerableError,
    Select,
    Shuffle,
    ThreadCode,
    Zero,
)

WARP = 32
PREAMBLE = """\
#if !defined(__CUDACC__) && !defined(METAFORK_CPU)
#define METAFORK_CPU
#endif
#if defined(METAFORK_CPU)
#include <metafork/device.h>
#endif
"""


def print_cuda(codes: list[ThreadCode]) -> str:
    """Print a file with the device function and kernel of every code; names must differ.

    Raises ``NotLowerableError`` for groups of threads that do not divide a warp.
    """
    return PREAMBLE + "".join("\n" + _function(code) + "\n" + _kernel(code) for code in codes)


def _group(code: ThreadCode) -> int:
    if code.lanes > WARP or WARP % code.lanes != 0:
        raise NotLowerableError(f"{code.lanes} threads do not fit into a warp of {WARP}; shuffles stay within a warp")
    return code.lanes


def _pointers(code: ThreadCode) -> str:
    return "".join(f"const T *{literal.name}, " for literal in code.inputs)


def _function(code: ThreadCode) -> str:
    group = _group(code)
    lines = [
        f"/* One tile of {code.name}: {code.lanes} threads, this one being `lane`. */",
        "template <typename T>",
        f"__device__ __forceinline__ void {code.name}_tile({_pointers(code)}T *out, int lane, bool active) {{",
    ]
    ranges = code.ranges
    for number, instruction in enumerate(code.instructions):
        lines.append(f"  const T v{number} = {_value(code, instruction, group)};")
    lines.append("  if (active) {")
    lines += [f"    out[{to_c(store.index, ranges)}] = v{store.value};" for store in code.stores]
    lines += ["  }", "}", ""]
    return "\n".join(lines)


def _value(code: ThreadCode, instruction: Instruction, group: int) -> str:
    ranges = code.ranges
    match instruction:
        case Load(memory, index, guard):
            read = f"{memory}[{to_c(index, ranges)}]"
            return read if guard is None else f"({to_c(guard, ranges)}) ? {read} : T(0)"
        case Shuffle(value, lane):
            return f"__shfl_sync(0xffffffffu, v{value}, {to_c(lane, ranges)}, {group})"
        case Select(condition, yes, no):
            return f"({to_c(condition, ranges)}) ? v{yes} : v{no}"
        case Zero():
            return "T(0)"
        case Combine(op, left, right):
            return f"v{left} {op} v{right}"
        case _:
            assert_never(instruction)


def shared_elements(code: ThreadCode) -> int:
    """Return how many elements of shared memory one group of threads needs."""
    return sum(prod(literal.shape) for literal in code.inputs if literal.shared)


def _kernel(code: ThreadCode) -> str:
    group, shared = _group(code), [literal for literal in code.inputs if literal.shared]
    elements = shared_elements(code)
    lines = [
        "/* Blocks of a multiple of 32 threads, one dimension; at least one tile. */",
        *([f"/* Shared memory: {elements} elements for every {group} threads. */"] if shared else []),
        "template <typename T>",
        f"__global__ void {code.name}({_pointers(code)}T *out, long long tiles) {{",
        f"  const int lane = threadIdx.x % {group};",
        f"  const long long group = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / {group};",
        "  const bool active = group < tiles;",
        "  const long long tile = active ? group : tiles - 1;",
    ]
    arguments = []
    offset = 0
    if shared:
        lines += [
            "#ifdef __CUDACC__",
            "  extern __shared__ __align__(16) unsigned char swizzle_shared[];",
            "#else",
            "  unsigned char *const swizzle_shared = metafork_cpu::shared_base();",
            "#endif",
            f"  T *const mine = reinterpret_cast<T *>(swizzle_shared) + (threadIdx.x / {group}) * {elements};",
        ]
    for literal in code.inputs:
        if literal.shared:
            lines += _staged(literal, group, offset)
            arguments.append(f"mine + {offset}")
            offset += prod(literal.shape)
        else:
            arguments.append(f"{literal.name} + tile * {literal.step}")
    if shared:
        lines.append("  __syncwarp();")
    arguments += [f"out + tile * {code.output_size}", "lane", "active"]
    lines += [f"  {code.name}_tile<T>({', '.join(arguments)});", "}", ""]
    return "\n".join(lines)


def _staged(literal: Literal, group: int, offset: int) -> list[str]:
    size = prod(literal.shape)
    target = f"mine[{offset} + e]" if offset else "mine[e]"
    return [
        f"  for (int e = lane; e < {size}; e += {group})",
        f"    {target} = {literal.name}[tile * {literal.step} + e];",
    ]
