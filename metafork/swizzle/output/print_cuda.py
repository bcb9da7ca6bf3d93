"""CUDA: a device function that works on one tile, and a kernel in which every group of threads takes a tile.

Shuffles are ``__shfl_sync`` over the whole warp, with the group as their width, so every thread of a warp takes part
also where the number of groups is odd: a group without a tile works on the last one and stores nothing.  Compiled by a
C++ compiler, the same text runs on the CPU build (``<metafork/device.h>``).
"""

from __future__ import annotations

from math import prod
from typing import assert_never

from metafork.swizzle.model.index import to_c
from metafork.swizzle.model.names import parameter_name
from metafork.swizzle.model.problem import Literal
from metafork.swizzle.output.instructions import (
    Combine,
    Given,
    Instruction,
    Integral,
    Load,
    NotLowerableError,
    Put,
    Select,
    Shuffle,
    Sync,
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
    return PREAMBLE + "".join(
        "\n" + (_device_function(code) if code.results else _function(code) + "\n" + _kernel(code)) for code in codes
    )


def _group(code: ThreadCode) -> int:
    if code.lanes > WARP or WARP % code.lanes != 0:
        raise NotLowerableError(f"{code.lanes} threads do not fit into a warp of {WARP}; shuffles stay within a warp")
    return code.lanes


def _pointers(code: ThreadCode) -> str:
    return "".join(f"const T *{parameter_name(literal.name)}, " for literal in code.inputs)


def _staged_pointers(code: ThreadCode) -> list[str]:
    return [f"T *{_identifier('staged', name)}" for name, _ in code.staged]


def _statement(code: ThreadCode, number: int, instruction: Instruction, group: int) -> str:
    match instruction:
        case Put(memory, index, value):
            return f"  {_identifier('staged', memory)}[{to_c(index, code.ranges)}] = v{value};"
        case Sync():
            return "  __syncwarp();"
        case _:
            return f"  const T v{number} = {_value(code, instruction, group)};"


def _function(code: ThreadCode) -> str:
    group = _group(code)
    lines = [
        f"/* One tile of {code.name}: {code.lanes} threads, this one being `lane`. */",
        "template <typename T>",
        f"__device__ __forceinline__ void {code.name}_tile({_pointers(code)}"
        f"{''.join(f'{one}, ' for one in _staged_pointers(code))}T *out, int lane, bool active) {{",
    ]
    ranges = code.ranges
    for number, instruction in enumerate(code.instructions):
        lines.append(_statement(code, number, instruction, group))
    lines.append("  if (active) {")
    lines += [f"    out[{to_c(store.index, ranges)}] = v{store.value};" for store in code.stores]
    lines += ["  }", "}", ""]
    return "\n".join(lines)


def _device_function(code: ThreadCode) -> str:
    group = _group(code)
    arrays = [f"const T (&{_identifier('given', name)})[{count}]" for name, count in code.given]
    arrays += [f"const T *{parameter_name(literal.name)}" for literal in code.inputs]
    arrays += _staged_pointers(code)
    arrays += [f"T (&{_identifier('result', name)})[{count}]" for name, count in code.results]
    lines = [
        f"/* Registers to registers: {code.lanes} threads, this one being `lane`; all threads of the warp call it. */",
        "template <typename T>",
        f"__device__ __forceinline__ void {code.name}({', '.join([*arrays, 'int lane'])}) {{",
        "  (void)lane;",
    ]
    for number, instruction in enumerate(code.instructions):
        lines.append(_statement(code, number, instruction, group))
    stores = iter(code.stores)
    for name, count in code.results:
        lines += [f"  {_identifier('result', name)}[{number}] = v{next(stores).value};" for number in range(count)]
    return "\n".join([*lines, "}", ""])


def _identifier(role: str, array: str) -> str:
    """Return a parameter's name: every role has a prefix of its own, and arrays without a name another one."""
    return f"{role}_{array}" if "." not in array else f"unnamed_{role}_{array.replace('.', '_')}"


def _value(code: ThreadCode, instruction: Instruction, group: int) -> str:
    ranges = code.ranges
    match instruction:
        case Load(memory, index, guard):
            staged = _identifier("staged", memory) if memory in dict(code.staged) else parameter_name(memory)
            read = f"{staged}[{to_c(index, ranges)}]"
            return read if guard is None else f"({to_c(guard, ranges)}) ? {read} : T(0)"
        case Shuffle(value, lane):
            return f"__shfl_sync(0xffffffffu, v{value}, {to_c(lane, ranges)}, {group})"
        case Select(condition, yes, no):
            return f"({to_c(condition, ranges)}) ? v{yes} : v{no}"
        case Zero():
            return "T(0)"
        case Given(array, number):
            return f"{_identifier('given', array)}[{number}]"
        case Integral(index):
            return f"T({to_c(index, ranges)})"
        case Put() | Sync():
            raise AssertionError("a statement has no value")
        case Combine("max" | "min" as op, left, right):
            return f"v{left} {'>' if op == 'max' else '<'} v{right} ? v{left} : v{right}"
        case Combine(op, left, right):
            return f"v{left} {op} v{right}"
        case _:
            assert_never(instruction)


def _kernel(code: ThreadCode) -> str:
    group, shared = _group(code), [literal for literal in code.inputs if literal.shared]
    elements = code.shared_elements
    lines = [
        "/* Blocks of a multiple of 32 threads, one dimension; at least one tile. */",
        *([f"/* Shared memory: {elements} elements for every {group} threads. */"] if elements else []),
        "template <typename T>",
        f"__global__ void {code.name}({_pointers(code)}T *out, long long tiles) {{",
        f"  const int lane = threadIdx.x % {group};",
        f"  const long long group = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / {group};",
        "  const bool active = group < tiles;",
        "  const long long tile = active ? group : tiles - 1;",
    ]
    arguments = []
    offset = 0
    if elements:
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
            arguments.append(f"{parameter_name(literal.name)} + tile * {literal.step}")
    if shared:
        lines.append("  __syncwarp();")
    for _, count in code.staged:
        arguments.append(f"mine + {offset}")
        offset += count
    arguments += [f"out + tile * {code.output_size}", "lane", "active"]
    lines += [f"  {code.name}_tile<T>({', '.join(arguments)});", "}", ""]
    return "\n".join(lines)


def _staged(literal: Literal, group: int, offset: int) -> list[str]:
    size = prod(literal.shape)
    target = f"mine[{offset} + e]" if offset else "mine[e]"
    return [
        f"  for (int e = lane; e < {size}; e += {group})",
        f"    {target} = {parameter_name(literal.name)}[tile * {literal.step} + e];",
    ]
