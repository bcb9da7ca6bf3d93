"""Why a program of instructions.py is above its goal, as read from its kernel; shown only where it is.

Of programs without a goal: why they are above ``instructions.FAR``.
"""

_TWO_COLUMNS = (
    "eight planes of four rows of two columns, as the expert's: but the planes end after eight, and two more are loaded"
)

_TREE = (
    "threads of four places in vectors, and a tree of one warp; but the block is any number of threads: loops, tests "
    "and a tree in shared memory, where the expert's warp has a row to itself"
)

_STEPS = (
    "one launch a step, as the program is written, each of which loads and stores the matrix; the expert's takes 32 "
    "steps at a time in shared memory"
)

_FOUR = (
    "4 x 4 results per thread, whatever s is, as threads and tiles are the program's: loads of shared memory take "
    "twice the expert's share, and a block of 64 x 64 loads 1.67 times as much"
)

REASONS = {
    "transposition": (
        "one padded tile as the expert's, but loops of unknown trips around both accesses, and a quotient that places "
        "each thread in the tile's rows"
    ),
    "matmul, n = 256": _FOUR,
    "matmul, s0 by s1 a thread, n = 256": _FOUR,
    "matmul, batched": (
        "one addition a step for each row of b, whose length is unknown; row addresses of a; one strip of 64 steps for "
        "prologue and epilogue"
    ),
    "3D Jacobi, T": _TWO_COLUMNS,
    "3D heat, double, T": (
        "four rows of eight planes per thread, one column, for doubles take two registers: 3.75 loads per result, and "
        "an address for each of its rows; the expert's has two columns"
    ),
    "seven points": _TWO_COLUMNS,
    "seven points, 3D blocks": _TWO_COLUMNS,
    "depthwise convolution": "4 x 4 results per thread; the expert's has eight rows, of which each is loaded once",
    "layer norm of rows": _TREE,
    "layer norm, meta_reduction": _TREE,
    "rows by a vector, meta_reduction": _TREE,
    "dot, meta_reduction": _TREE,
    "dot by blocks": _TREE,
    "softmax of rows": _TREE,
    "Floyd-Warshall, blocked expert": _STEPS,
    "LU, blocked expert": _STEPS,
    "Floyd-Warshall": (
        "beside column k a thread stores two columns and one, a sector each; the expert's stores column k as it was, "
        "while other threads read it"
    ),
}
