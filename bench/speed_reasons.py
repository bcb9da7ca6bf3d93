"""Why a program of instructions.py is above its goal, as read from its kernel; shown only where it is."""

_ROW = (
    "a thread has four results of a row at a time: each product reads `b` from shared memory, with a symbolic stride, "
    "and `c` is read and written in every step of `k`; a static instance keeps them in registers"
)
_CUBE = (
    "one result a thread, so no plane is kept in registers: each result loads its seven points, from the first-level "
    "cache"
)

REASONS = {
    "matmul": _ROW,
    "matmul, s0 by s1 a thread": (
        "4 by 4 results have registers for a tile of `K` steps only, since `s0` and `s1` are no constants: `c` is "
        "read and written in every step of `k`; indices and copies have symbolic strides"
    ),
    "matmul, literal 4 by 4": (
        "the results are in registers; what is left are shared memory read 4 bytes at a time, its indices, and "
        "the copies with their loops, since block, `K` and `n` are unknown to the compiler"
    ),
    "matmul, tall": _ROW,
    "matmul, batched": _ROW,
    "matmul, strided": _ROW,
    "transposition": (
        "one padded tile as the expert's, but loops of unknown trips around both accesses, and a quotient that places "
        "each thread in the tile's rows"
    ),
    "1D mean of three": (
        "each result loads its three points, from the first-level cache: an expert's block has one request where "
        "neighbours share a sector"
    ),
    "2D Jacobi, nine points": (
        "one result a thread, so no row is kept in registers: each result loads its nine points, from the first-level "
        "cache, which counts as requests"
    ),
    "2D Jacobi, five points, T": (
        "the rows of a thread are `B0` apart, so none is kept in registers: each result loads its five points, from "
        "the first-level cache, with indices recomputed at each access"
    ),
    "3D Jacobi, T": _CUBE,
    "3D heat, double, T": _CUBE,
    "axpy": ("one element an access where the expert's takes four, with index arithmetic for each"),
    "matvec, transposed": ("one column a thread and one element of `x` a load; the expert's takes four of each"),
    "convolution 3 by 3": (
        "each product loads pixel and weight, from the first-level cache; rows and weights are not kept in registers"
    ),
    "convolution, 8 to 8 channels": (
        "one result a thread: each product reads pixel and weight from global memory, each with an index of its own; "
        "nothing is cached, since the windows of a block grow with `C`"
    ),
    "Floyd-Warshall": (
        "one element a thread, four accesses and two conditions for one sum; the expert's takes 4 by 4 elements, "
        "16 bytes at a time"
    ),
    "LU": ("one element a thread: three accesses, each with an index of its own, and two conditions for one product"),
    "n-body": (
        "a body is read by four loads from global memory where the expert's takes one 16-byte load from shared "
        "memory; a program that walks in tiles (below) does better"
    ),
    "n-body, tiles": ("four shared loads a body instead of one of 16 bytes"),
}
