"""Kernels on which each of gpucc's eight optimizations is seen, in LLVM IR, and one thread that runs them."""

import re
from dataclasses import dataclass

import numpy as np

from metafork.llvm.switches import (
    ALIASES,
    DIVISIONS,
    INLINING,
    MEMORY_SPACES,
    POINTERS,
    REASSOCIATION,
    SPECULATION,
    STRENGTH,
    UNROLLING,
    ptx_without,
)
from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.text.parser import parse

GLOBAL = "ptr addrspace(1)"

# Figure 6 of the paper, with sums of integers.
FIGURE_6 = f"""
define ptx_kernel void @k({GLOBAL} %out, {GLOBAL} %a, i64 %b, i64 %c, i64 %n) {{
entry:
  br label %outer
outer:
  %x = phi i64 [0, %entry], [%x1, %next]
  %s0 = phi i32 [0, %entry], [%s, %next]
  br label %inner
inner:
  %y = phi i64 [0, %outer], [%y1, %inner]
  %s1 = phi i32 [%s0, %outer], [%s, %inner]
  %cy = add i64 %c, %y
  %bx = add i64 %b, %x
  %row = mul i64 %bx, %n
  %i = add i64 %cy, %row
  %p = getelementptr i32, {GLOBAL} %a, i64 %i
  %v = load i32, {GLOBAL} %p
  %s = add i32 %s1, %v
  %y1 = add i64 %y, 1
  %again = icmp slt i64 %y1, 3
  br i1 %again, label %inner, label %next
next:
  %x1 = add i64 %x, 1
  %more = icmp slt i64 %x1, 3
  br i1 %more, label %outer, label %done
done:
  store i32 %s, {GLOBAL} %out
  ret void
}}
"""

_ROUNDS = "\n".join(
    f"  %a{k} = mul i32 %{f'b{k - 1}' if k else 'x'}, {2 * k + 3}\n  %b{k} = xor i32 %a{k}, {77 * k + 1}"
    for k in range(60)
)
LARGE_FUNCTION = f"""
define internal i32 @f(i32 %x) {{
{_ROUNDS}
  ret i32 %b59
}}
define ptx_kernel void @k({GLOBAL} %out, i32 %a, i32 %b) {{
  %q = call i32 @f(i32 %a)
  %r = call i32 @f(i32 %b)
  %s = add i32 %q, %r
  store i32 %s, {GLOBAL} %out
  ret void
}}
"""

# Figure 4: a pointer into shared memory that goes around a loop.
FIGURE_4 = f"""
@a = internal addrspace(3) global [64 x i32] undef, align 4
define ptx_kernel void @k({GLOBAL} %out, i32 %first) {{
entry:
  %end = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @a to ptr), i64 64
  br label %fill
fill:
  %q = phi ptr [addrspacecast (ptr addrspace(3) @a to ptr), %entry], [%q1, %fill]
  %w = phi i32 [%first, %entry], [%w1, %fill]
  store volatile i32 %w, ptr %q
  %w1 = mul i32 %w, 3
  %q1 = getelementptr i32, ptr %q, i64 1
  %full = icmp eq ptr %q1, %end
  br i1 %full, label %read, label %fill
read:
  %p = phi ptr [addrspacecast (ptr addrspace(3) @a to ptr), %fill], [%p1, %read]
  %s = phi i32 [0, %fill], [%s1, %read]
  %v = load i32, ptr %p
  %s1 = add i32 %s, %v
  %p1 = getelementptr i32, ptr %p, i64 1
  %last = icmp eq ptr %p1, %end
  br i1 %last, label %done, label %read
done:
  store i32 %s1, {GLOBAL} %out
  ret void
}}
"""

# The first store is dead, if the load between is of another memory.
DEAD_STORE = f"""
define ptx_kernel void @k({GLOBAL} %out, ptr addrspace(3) %at, i32 %x) {{
  %generic = addrspacecast {GLOBAL} %out to ptr
  %shared = addrspacecast ptr addrspace(3) %at to ptr
  store i32 1, ptr %generic
  %v = load i32, ptr %shared
  %w = add i32 %v, %x
  store i32 %w, ptr %generic
  ret void
}}
"""

OFFSETS = f"""
define ptx_kernel void @k({GLOBAL} noalias %out, {GLOBAL} noalias readonly %a, i32 %i, i32 %j) {{
  %i5 = add nsw i32 %i, 5
  %far = add nsw i32 %i5, %j
  %x = sext i32 %far to i64
  %p = getelementptr inbounds i32, {GLOBAL} %a, i64 %x
  %u = load i32, {GLOBAL} %p
  %near = add nsw i32 %i, %j
  %y = sext i32 %near to i64
  %q = getelementptr inbounds i32, {GLOBAL} %a, i64 %y
  %v = load i32, {GLOBAL} %q
  %s = sub i32 %u, %v
  store i32 %s, {GLOBAL} %out
  ret void
}}
"""

PRODUCTS = f"""
define ptx_kernel void @k({GLOBAL} %out, i32 %b, i32 %s) {{
  %x = mul i32 %b, %s
  store volatile i32 %x, {GLOBAL} %out
  %b1 = add i32 %b, 2
  %y = mul i32 %b1, %s
  store volatile i32 %y, {GLOBAL} %out
  ret void
}}
"""

SUMS = f"""
define ptx_kernel void @k({GLOBAL} %out, i32 %b, i32 %c, i32 %n) {{
  %x = add i32 %b, %c
  store volatile i32 %x, {GLOBAL} %out
  %y = add i32 %c, %n
  %z = add i32 %b, %y
  store volatile i32 %z, {GLOBAL} %out
  ret void
}}
"""

# Figure 7: addresses in branches.
FIGURE_7 = f"""
define ptx_kernel void @k({GLOBAL} noalias %out, {GLOBAL} noalias %a, i64 %i, i64 %j, i32 %b, i32 %c) {{
entry:
  %none = icmp eq i32 %b, 0
  br i1 %none, label %middle, label %first
first:
  %p = getelementptr i32, {GLOBAL} %a, i64 %i
  %u = load i32, {GLOBAL} %p
  store volatile i32 %u, {GLOBAL} %out
  br label %middle
middle:
  %nothing = icmp eq i32 %c, 0
  br i1 %nothing, label %end, label %second
second:
  %ij = add i64 %i, %j
  %q = getelementptr i32, {GLOBAL} %a, i64 %ij
  %v = load i32, {GLOBAL} %q
  store volatile i32 %v, {GLOBAL} %out
  br label %end
end:
  ret void
}}
"""

QUOTIENT = f"""
define ptx_kernel void @k({GLOBAL} %out, i64 %a, i64 %b) {{
  %q = udiv i64 %a, %b
  store i64 %q, {GLOBAL} %out
  ret void
}}
"""


@dataclass(frozen=True)
class Seen:
    """A kernel, how often a pattern stands in its PTX with an optimization and without, and what it is called with.

    ``passes`` run before the code generator: those of the standard pipeline do some of the work too.  ``beside`` is
    left out in both: an optimization of today that does the same.
    """

    optimization: str
    ir: str
    pattern: str
    times: tuple[int, int]
    calls: tuple[tuple[int, ...], ...]
    passes: tuple[str, ...] = ("O3",)
    beside: tuple[str, ...] = ()

    def texts(self):
        """The PTX with the optimization, and without it."""
        ir = f'target triple = "nvptx64-nvidia-cuda"\n{self.ir}'
        return [ptx_without(left, ir, self.passes) for left in (self.beside, (*self.beside, self.optimization))]


ALL = (
    Seen(UNROLLING, FIGURE_6, r"\bbra\b", (0, 2), ((0, 0, 4), (1, 2, 7))),
    Seen(INLINING, LARGE_FUNCTION, r"call\.uni|\bcall\b", (0, 2), ((5, 9), (-3, 2**31 - 1))),
    Seen(MEMORY_SPACES, FIGURE_4, r"\bld\.(b|u|v)", (0, 63), ((3,), (-1,))),
    Seen(ALIASES, DEAD_STORE, r"\bst(\.global)?\.b32", (1, 2), ((0, 9), (4, -2))),
    Seen(POINTERS, OFFSETS, r"\[%rd\d+\+20\]", (1, 0), ((0, 0), (3, 4)), ()),
    Seen(STRENGTH, PRODUCTS, r"\bmul\.|\bmad\.", (1, 2), ((3, 4), (-5, 2**30))),
    Seen(REASSOCIATION, SUMS, r"\badd\.s32", (2, 3), ((3, 4, 5), (2**31 - 1, 1, -8)), (), (STRENGTH,)),
    Seen(SPECULATION, FIGURE_7, r"\badd\.s64", (2, 3), ((3, 4, 1, 0), (4, 5, 0, 1), (2, 2, 1, 1))),
    Seen(DIVISIONS, QUOTIENT, r"\bdiv\.u32", (1, 0), ((17, 5), (2**40 + 3, 7), (2**35, 2**33))),
)


def run(ptx, ir, numbers):
    """Run the kernel in one thread; return the memory of two words, and what was executed."""
    memory = GlobalMemory()
    out = memory.upload(np.zeros(2, np.int32))
    table = memory.upload(np.arange(64, dtype=np.int32) ** 2)
    pointers = [out, table][: re.search(r"@k\((.*)\)", ir)[1].count(GLOBAL)]
    done = run_kernel(parse(ptx), "k", (1,), (1,), [*pointers, *numbers], memory=memory, shared_bytes=16)
    return memory.read(out, 2, np.int32).tolist(), done


def result(ptx, ir, numbers):
    """The two words that the kernel leaves."""
    return run(ptx, ir, numbers)[0]
