"""The programs of instructions.py: sizes, block shapes, arrays, the expert's kernel and a lower bound for each.

A bound counts warp instructions: arithmetic, fused where it can be, and one access of one element a lane for every
element that must be read or written once.  Division and square root count as nvcc's sequences for them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

WARP = 32
DIVISION, RECIPROCAL, ROOT = 10, 8, 9
"""Instructions of nvcc's correctly rounded fp32 sequences, without their rare paths."""

COMPUTE, MEMORY = 1.25, 2.0
"""What we may take of an expert's instructions: where arithmetic or shared memory bounds it, where DRAM does."""


@dataclass(frozen=True, slots=True)
class Case:
    """One function on one size.

    `arguments` and `expert_arguments` name sizes, shape parameters and arrays in the order of the C functions; `arrays`
    makes arrays for sizes; `large` are the sizes that differ where a GPU is timed; `flops` says how many operations a
    product takes, in its sizes, and `bytes` what others move at least: in each step what is read, and what is written;
    `ulp` is what a result may differ by
    without contraction; `other_order`: the expert's sums are not those of the program; `options` are those of
    ``metafork optimize``.
    """

    name: str
    source: str
    function: str
    arguments: str
    sizes: dict
    shapes: tuple[dict, ...]
    arrays: Callable
    results: tuple[str, ...]
    expert: str
    expert_function: str
    expert_arguments: str
    bound: float
    goal: float | None
    large: dict
    ulp: int = 0
    other_order: bool = False
    options: tuple[str, ...] = ()
    flops: str = ""
    bytes: str = ""

    @property
    def expert_has_shape(self):
        """Whether the expert's kernel has the threads of each shape."""
        return not self.shapes[0].keys().isdisjoint(self.expert_arguments.split())


def _shapes(names, *rows):
    return tuple(dict(zip(names.split(), row, strict=True)) for row in rows)


def extents(text, sizes):
    """The extents of an array, written as expressions in the sizes with a space between them."""
    return tuple(int(eval(one, {}, sizes)) for one in text.split())


def _floats(**shapes):
    return lambda random, sizes: {
        name: random.random(extents(text, sizes), np.float32) for name, text in shapes.items()
    }


def _integers(**shapes):
    most = 2**30 // 3
    return lambda random, sizes: {
        name: random.integers(-most, most, extents(text, sizes), np.int32) for name, text in shapes.items()
    }


def _product(m, n, inner, batch=1):
    return batch * (m * n * inner + m * inner + inner * n + 2 * m * n) / WARP


def _distances(random, sizes):
    d = random.integers(1, 10000, (sizes["n"], sizes["n"]), np.int32)
    np.fill_diagonal(d, 0)
    return {"d": d}


def _dominant(random, sizes):
    n = sizes["n"]
    return {"a": (random.random((n, n)) + n * np.eye(n)).astype(np.float32)}


def _bodies(random, sizes):
    found = {name: random.random(sizes["n"], np.float32) for name in ("x", "y", "z", "mass")}
    return found | {name: np.zeros(sizes["n"], np.float32) for name in ("ax", "ay", "az")}


def _cube(kind):
    return lambda random, sizes: {name: random.random((sizes["n"],) * 3).astype(kind) for name in ("u", "w")}


def _case(
    name, source, function, arguments, sizes, shapes, arrays, results, expert, expert_arguments, bound, goal, large,
    **rest,
):  # fmt: skip
    file, expert_function = expert.split(".")
    return Case(
        name, source, function, arguments, sizes, shapes, arrays, tuple(results.split()), f"{file}.cu",
        f"expert_{expert_function}", expert_arguments, bound, goal, large, **rest,
    )  # fmt: skip


def _rows(random, sizes):
    """A sparse matrix of rows with 1 to 127 elements, 64 in the mean."""
    m, n = sizes["m"], sizes["n"]
    apart = random.integers(0, 64, m // 2)
    lengths = 64 + np.stack([apart, -apart], axis=1).ravel()
    first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    column = np.concatenate([np.sort(random.choice(n, int(count), replace=False)) for count in lengths])
    extents = {"value": "nnz", "x": "n", "y": "m"}
    vectors = {name: random.random(sizes[size], np.float32) for name, size in extents.items()}
    return {"first": first, "column": column.astype(np.int32), **vectors}


SUMS = ("--reassociate",)
"""Sums of floats in an order of MetaFork's own: results are near those of the text."""
N = 2**18
BODIES = 1024
NBODY = "n B soft x y z mass ax ay az"
CASES = (
    _case(
        "matmul", "examples/matmul.mf", "matmul", "n B0 ub1 s a b c", {"n": 192},
        _shapes("B0 ub1 s", (16, 16, 4), (16, 32, 2), (32, 16, 4), (8, 32, 6), (64, 16, 4)),
        _floats(a="n n", b="n n", c="n n"), "c",
        "matmul.square", "n a b c", _product(192, 192, 192), COMPUTE,
        {"n": 3840}, flops="2*n*n*n",
    ),
    _case(
        "matmul, n = 256", "examples/matmul.mf", "matmul", "n B0 ub1 s a b c", {"n": 256},
        _shapes("B0 ub1 s", (64, 16, 4), (64, 16, 8), (32, 16, 8), (64, 8, 8), (128, 8, 16), (32, 32, 8)),
        _floats(a="n n", b="n n", c="n n"), "c",
        "matmul.product_update", "n a b c", _product(256, 256, 256), COMPUTE,
        {"n": 4096}, flops="2*n*n*n",
    ),
    _case(
        "matmul, s0 by s1 a thread", "examples/matmul_tile.mf", "matmul_tile", "n B K s0 s1 a b c", {"n": 192},
        _shapes("B K s0 s1", (16, 16, 4, 4), (16, 64, 4, 4), (16, 8, 4, 4), (8, 16, 4, 4), (16, 16, 2, 4)),
        _floats(a="n n", b="n n", c="n n"), "c",
        "matmul.square", "n a b c", _product(192, 192, 192), COMPUTE,
        {"n": 4096}, flops="2*n*n*n",
    ),
    _case(
        "matmul, s0 by s1 a thread, n = 256", "examples/matmul_tile.mf", "matmul_tile", "n B K s0 s1 a b c", {"n": 256},
        _shapes("B K s0 s1", (16, 16, 8, 8), (16, 8, 8, 8), (16, 32, 8, 8), (16, 64, 4, 4), (16, 32, 4, 4)),
        _floats(a="n n", b="n n", c="n n"), "c",
        "matmul.product_update", "n a b c", _product(256, 256, 256), COMPUTE,
        {"n": 4096}, flops="2*n*n*n",
    ),
    _case(
        "matmul, literal 4 by 4", "bench/programs/matmul_literal.mf", "matmul_literal", "n B K a b c", {"n": 192},
        _shapes("B K", (16, 16), (16, 64), (16, 8), (8, 16)),
        _floats(a="n n", b="n n", c="n n"), "c",
        "matmul.square", "n a b c", _product(192, 192, 192), COMPUTE,
        {"n": 4096}, flops="2*n*n*n",
    ),
    *(
        _case(
            name + ending, f"bench/programs/{function}.mf", function, f"n B0 B1 {arrays}", {"n": n},
            _shapes("B0 B1", (16, 16), (8, 32), (32, 8), (32, 32)),
            _floats(**dict.fromkeys(arrays.split(), "n n")), "c",
            f"matmul.{function}", f"n {arrays}", _product(n, n, n) / (2 if function == "syrk" else 1), COMPUTE,
            {"n": large}, flops="2*n*n*n",
        )
        for n, large, ending in ((256, 4096, ""), (250, 4090, ", n = 250"))
        for name, function, arrays in (
            ("product under meta_block", "product", "a b c"),
            ("product under meta_block, +=", "product_update", "a b c"),
            ("lower triangle of a * a^T", "syrk", "a c"),
        )
    ),
    _case(
        "matmul, tall", "bench/programs/matmul_tall.mf", "matmul_tall", "m l n B0 B1 s K a b c",
        {"m": 512, "l": 64, "n": 64},
        _shapes("B0 B1 s K", (16, 16, 4, 16), (16, 32, 2, 16), (32, 16, 4, 16), (16, 16, 4, 32),
                (64, 16, 4, 32), (64, 16, 4, 64)),
        _floats(a="m l", b="l n", c="m n"), "c",
        "matmul.tall", "m l n a b c", _product(512, 64, 64), COMPUTE,
        {"m": 2**16, "l": 512, "n": 512}, flops="2*m*l*n",
    ),
    _case(
        "matmul, batched", "bench/programs/matmul_batched.mf", "matmul_batched", "batch n B0 B1 s K a b c",
        {"batch": 8, "n": 64},
        _shapes("B0 B1 s K", (16, 16, 4, 16), (16, 32, 2, 16), (32, 16, 4, 16), (16, 16, 4, 32),
                (64, 16, 4, 32), (64, 16, 4, 64)),
        _floats(a="batch n n", b="batch n n", c="batch n n"), "c",
        "matmul.batched", "batch n a b c", _product(64, 64, 64, 8), COMPUTE,
        {"batch": 64, "n": 1024}, flops="2*batch*n*n*n",
    ),
    _case(
        "matmul, strided", "bench/programs/matmul_strided.mf", "matmul_strided", "n lda ldb ldc B0 B1 s K a b c",
        {"n": 128, "lda": 160, "ldb": 144, "ldc": 136},
        _shapes("B0 B1 s K", (16, 16, 4, 16), (16, 32, 2, 16), (32, 16, 4, 16), (16, 16, 4, 32),
                (64, 16, 4, 32), (64, 16, 4, 64)),
        _floats(a="n*lda", b="n*ldb", c="n*ldc"), "c",
        "matmul.strided", "n lda ldb ldc a b c", _product(128, 128, 128), COMPUTE,
        {"n": 2048, "lda": 2080, "ldb": 2064, "ldc": 2056}, flops="2*n*n*n",
    ),
    _case(
        "copy", "examples/transpose.mf", "transpose", "N s B0 B1 a c", {"N": 512},
        _shapes("B0 B1 s", (8, 32, 4), (8, 32, 1), (4, 64, 2), (16, 16, 2)),
        _integers(a="N N", c="N*N"), "c",
        "moves.copy", "N a c", 2 * 512 * 512 / WARP, MEMORY,
        {"N": 2**13}, bytes="8*N*N",
    ),
    _case(
        "transposition", "examples/transpose.mf", "transpose_true", "N s B0 B1 a c", {"N": 512},
        _shapes("B0 B1 s", (16, 16, 2), (8, 32, 4), (8, 32, 8), (32, 8, 4), (16, 32, 1)),
        _integers(a="N N", c="N N"), "c",
        "moves.transpose", "N a c", 2 * 512 * 512 / WARP, MEMORY,
        {"N": 2**13}, bytes="8*N*N",
    ),
    _case(
        "1D Jacobi, integers", "examples/jacobi1d.mf", "jacobi1d", "T N s B a", {"T": 2, "N": N + 2},
        _shapes("B s", (256, 4), (256, 1), (128, 8), (64, 16)),
        _integers(a="2*N"), "a",
        "stencils.jacobi1d", "T N a", 2 * 5 * N / WARP, MEMORY,
        {"T": 10, "N": 2**25 + 2}, bytes="8*T*N",
    ),
    _case(
        "1D mean of three", "examples/smooth.mf", "smooth", "n s B x y", {"n": N + 2},
        _shapes("B s", (256, 4), (256, 1), (128, 8), (64, 16)),
        _floats(x="n", y="n"), "y",
        "stencils.smooth", "n x y", (2 + DIVISION + 2) * N / WARP, MEMORY,
        {"n": 2**26 + 2}, bytes="8*n",
    ),
    _case(
        "2D Jacobi, nine points", "examples/jacobi2d.mf", "jacobi2d", "rows columns B0 B1 c0 c1 c2 a b",
        {"rows": 514, "columns": 514, "c0": np.float32(0.5), "c1": np.float32(0.1), "c2": np.float32(0.025)},
        _shapes("B0 B1", (8, 32), (16, 16), (4, 64), (8, 64), (32, 32)),
        _floats(a="rows columns", b="rows columns"), "b",
        "stencils.jacobi2d", "rows columns c0 c1 c2 a b", 11 * N / WARP, MEMORY,
        {"rows": 2**13 + 2, "columns": 2**13 + 2}, bytes="8*rows*columns",
    ),
    _case(
        "2D Jacobi, five points, T", "bench/programs/jacobi2d_time.mf", "jacobi2d_time", "T n s B0 B1 a b",
        {"T": 1, "n": 514},
        _shapes("s B0 B1", (4, 8, 32), (1, 8, 32), (8, 4, 32), (4, 4, 64), (1, 32, 32), (4, 8, 64), (4, 16, 64)),
        _floats(a="n n", b="n n"), "a b",
        "stencils.jacobi2d_time", "T n a b", 2 * 7 * N / WARP, MEMORY,
        {"T": 5, "n": 2**13 + 2}, bytes="16*T*n*n",
    ),
    _case(
        "3D Jacobi, T", "bench/programs/jacobi3d.mf", "jacobi3d", "T n B0 B1 B2 c u w",
        {"T": 1, "n": 66, "c": np.float32(0.1)},
        _shapes("B0 B1 B2", (2, 4, 32), (1, 8, 32), (4, 4, 16), (1, 4, 64), (8, 4, 32)),
        _cube(np.float32), "u w",
        "stencils.jacobi3d", "T n c u w", 2 * (7 + 2) * N / WARP, MEMORY,
        {"T": 5, "n": 514}, bytes="16*T*n*n*n",
    ),
    _case(
        "3D heat, double, T", "examples/heat3d.mf", "heat3d", "n steps B0 B1 B2 c u w",
        {"n": 34, "steps": 1, "c": np.float64(0.1)},
        _shapes("B0 B1 B2", (2, 4, 32), (1, 8, 32), (4, 4, 16), (4, 8, 8), (8, 4, 32)),
        _cube(np.float64), "u w",
        "stencils.heat3d", "n steps c u w", 2 * (7 + 2) * 32**3 / WARP, MEMORY,
        {"steps": 5, "n": 386}, bytes="32*steps*n*n*n",
    ),
    _case(
        "matadd", "examples/matadd.mf", "matadd", "N B0 B1 a b c", {"N": 512},
        _shapes("B0 B1", (8, 32), (4, 64), (16, 16), (2, 128)),
        _integers(a="N N", b="N N", c="N N"), "c",
        "moves.matadd", "N a b c", 4 * 512 * 512 / WARP, MEMORY,
        {"N": 2**13}, bytes="12*N*N",
    ),
    _case(
        "axpy", "bench/programs/axpy.mf", "axpy", "n s B alpha x y", {"n": N, "alpha": np.float32(0.7)},
        _shapes("B s", (256, 4), (256, 1), (128, 8), (64, 16), (64, 32)),
        _floats(x="n", y="n"), "y",
        "moves.axpy", "n alpha x y", 4 * N / WARP, MEMORY,
        {"n": 2**26}, bytes="12*n",
    ),
    _case(
        "dot by blocks", "bench/programs/dot.mf", "dot", "n s B x y partial", {"n": N},
        _shapes("B s", (256, 4), (128, 8), (64, 16)),
        _floats(x="n", y="n", partial="n//1024"), "partial",
        "reductions.dot", "n x y partial", 3 * N / WARP, None,
        {"n": 2**26}, bytes="8*n", other_order=True,
    ),
    _case(
        "matvec", "examples/matvec.mf", "matvec", "m n B A x y", {"m": 512, "n": 512},
        _shapes("B", (32,), (64,), (128,)),
        _floats(A="m n", x="n", y="m"), "y",
        "reductions.matvec", "m n A x y", 2 * 512 * 512 / WARP, None,
        {"m": 2**14, "n": 2**14}, bytes="4*m*n", other_order=True,
    ),
    _case(
        "matvec, transposed", "bench/programs/matvec_transposed.mf", "matvec_transposed", "m n B A x y",
        {"m": 512, "n": 512},
        _shapes("B", (32,), (64,), (128,)),
        _floats(A="m n", x="m", y="n"), "y",
        "reductions.matvec_transposed", "m n A x y", 2 * 512 * 512 / WARP, MEMORY,
        {"m": 2**14, "n": 2**14}, bytes="4*m*n",
    ),
    _case(
        "convolution 3 by 3", "bench/programs/conv3x3.mf", "conv3x3", "h w s B0 B1 image weight out",
        {"h": 512, "w": 512},
        _shapes("s B0 B1", (4, 8, 32), (1, 8, 32), (8, 4, 32), (4, 4, 64), (1, 32, 32), (1, 16, 64), (8, 4, 128),
                (4, 8, 128)),
        _floats(image="h+2 w+2", weight="3 3", out="h w"), "out",
        "convolutions.conv3x3", "h w image weight out", 11 * N / WARP, COMPUTE,
        {"h": 2**13, "w": 2**13},
    ),
    _case(
        "convolution, 8 to 8 channels", "bench/programs/conv_channels.mf", "conv_channels",
        "C F h w Bf B0 B1 in weight out",
        {"C": 8, "F": 8, "h": 64, "w": 64},
        _shapes("Bf B0 B1", (1, 8, 32), (2, 4, 32), (8, 4, 32), (8, 8, 8), (4, 8, 32), (1, 16, 64), (4, 4, 64)),
        _floats(**{"in": "C h+2 w+2", "weight": "F C 3 3", "out": "F h w"}), "out",
        "convolutions.conv_channels", "C F h w in weight out", (8 * 8 * 9 + 8 + 8) * 64 * 64 / WARP, COMPUTE,
        {"h": 2048, "w": 2048},
    ),
    _case(
        "depthwise convolution", "bench/programs/depthwise.mf", "depthwise", "C h w B0 B1 in weight out",
        {"C": 4, "h": 256, "w": 256},
        _shapes("B0 B1", (8, 32), (16, 16), (32, 8), (32, 32)),
        _floats(**{"in": "C h+2 w+2", "weight": "C 3 3", "out": "C h w"}), "out",
        "convolutions.depthwise", "C h w in weight out", 11 * N / WARP, COMPUTE,
        {"C": 64, "h": 1024, "w": 1024},
    ),
    _case(
        "bilateral filter", "bench/programs/bilateral.mf", "bilateral", "h w B0 B1 falloff space in out",
        {"h": 128, "w": 128, "falloff": np.float32(-2.0)},
        _shapes("B0 B1", (8, 32), (16, 16), (32, 8), (32, 32)),
        _floats(**{"space": "5 5", "in": "h+4 w+4", "out": "h w"}), "out",
        "convolutions.bilateral", "h w falloff space in out", 25 * 12 * 128 * 128 / WARP, COMPUTE,
        {"h": 4096, "w": 4096}, ulp=8,
    ),
    _case(
        "seven points", "bench/programs/seven_points.mf", "seven_points", "l m n B0 B1 c u w",
        {"l": 18, "m": 66, "n": 258},
        _shapes("B0 B1", (8, 32), (16, 16), (32, 8), (32, 32)),
        _floats(c="7", u="l m n", w="l m n"), "w",
        "stencils.seven_points", "l m n c u w", 9 * 64**3 / WARP, MEMORY,
        {"l": 514, "m": 514, "n": 514},
    ),
    _case(
        "seven points, 3D blocks", "bench/programs/seven_points_3d.mf", "seven_points_3d", "l m n B0 B1 B2 c u w",
        {"l": 18, "m": 66, "n": 258},
        _shapes("B0 B1 B2", (4, 8, 32), (1, 8, 32), (2, 4, 32), (4, 4, 16)),
        _floats(c="7", u="l m n", w="l m n"), "w",
        "stencils.seven_points", "l m n c u w", 9 * 64**3 / WARP, MEMORY,
        {"l": 514, "m": 514, "n": 514},
    ),
    _case(
        "Floyd-Warshall", "bench/programs/floyd_warshall.mf", "floyd_warshall", "n B0 B1 d", {"n": 384},
        _shapes("B0 B1", (16, 64), (8, 64)),
        _distances, "d",
        "eliminations.floyd_warshall", "n d", 4 * 384**3 / WARP, MEMORY,
        {"n": 3072},
    ),
    _case(
        "LU", "bench/programs/lu.mf", "lu", "n B B0 B1 a", {"n": 128},
        _shapes("B B0 B1", (32, 8, 32), (32, 4, 32), (64, 16, 16), (32, 32, 32), (32, 16, 64), (32, 8, 128)),
        _dominant, "a",
        "eliminations.lu", "n a", sum((3 * k + DIVISION + 3) * -(-k // WARP) for k in range(1, 128)), MEMORY,
        {"n": 4096},
    ),
    _case(
        "Floyd-Warshall, blocked expert", "bench/programs/floyd_warshall.mf", "floyd_warshall", "n B0 B1 d", {"n": 384},
        _shapes("B0 B1", (16, 64)),
        _distances, "d",
        "eliminations.floyd_warshall_blocked", "n d", 2 * 384**3 / WARP, None,
        {"n": 3072},
    ),
    _case(
        "LU, blocked expert", "bench/programs/lu.mf", "lu", "n B B0 B1 a", {"n": 128},
        _shapes("B B0 B1", (32, 8, 32), (32, 32, 32)),
        _dominant, "a",
        "eliminations.lu_blocked", "n a", sum((k + DIVISION) * -(-k // WARP) for k in range(1, 128)), None,
        {"n": 1024},
    ),
    _case(
        "softmax of rows", "bench/programs/softmax.mf", "softmax", "m n B x y", {"m": 256, "n": 512},
        _shapes("B", (64,), (128,), (256,)),
        _floats(x="m n", y="m n"), "y",
        "reductions.softmax_by_blocks", "m n B x y", 16 * 256 * 512 / WARP, None,
        {"m": 2**16}, bytes="8*m*n", ulp=4, other_order=True,
    ),
    _case(
        "layer norm of rows", "bench/programs/layer_norm.mf", "layer_norm", "m n B eps x gain shift y",
        {"m": 256, "n": 512, "eps": np.float32(1e-5)},
        _shapes("B", (64,), (128,), (256,)),
        _floats(x="m n", gain="n", shift="n", y="m n"), "y",
        "reductions.layer_norm_by_blocks", "m n B eps x gain shift y", 8 * 256 * 512 / WARP, None,
        {"m": 2**16}, bytes="8*m*n", other_order=True,
    ),
    _case(
        "layer norm, meta_reduction", "bench/programs/layer_norm_reduction.mf", "layer_norm_reduction",
        "m n B eps x gain shift y", {"m": 256, "n": 512, "eps": np.float32(1e-5)},
        _shapes("B", (32,), (64,), (128,), (256,)),
        _floats(x="m n", gain="n", shift="n", y="m n"), "y",
        "reductions.layer_norm", "m n eps x gain shift y", 8 * 256 * 512 / WARP, None,
        {"m": 2**16}, bytes="8*m*n", other_order=True, options=SUMS,
    ),
    _case(
        "rows by a vector, meta_reduction", "bench/programs/row_product.mf", "row_product", "m n B a x y",
        {"m": 512, "n": 512},
        _shapes("B", (32,), (64,), (128,), (256,)),
        _floats(a="m n", x="n", y="m"), "y",
        "reductions.row_product", "m n a x y", 2 * 512 * 512 / WARP, None,
        {"m": 2**14, "n": 2**14}, bytes="4*m*n", other_order=True, options=SUMS,
    ),
    _case(
        "rows by a vector under meta_block", "bench/programs/gemv.mf", "gemv", "m n B a x y", {"m": 512, "n": 512},
        _shapes("B", (64,), (128,), (256,)),
        _floats(a="m n", x="n", y="m"), "y",
        "reductions.row_product", "m n a x y", 2 * 512 * 512 / WARP, None,
        {"m": 2**14, "n": 2**14}, bytes="4*m*n", other_order=True,
    ),
    _case(
        "sparse rows by a vector", "bench/programs/csr.mf", "csr", "m nnz n B first column value x y",
        {"m": 512, "nnz": 64 * 512, "n": 512},
        _shapes("B", (64,), (128,), (256,)),
        _rows, "y",
        "reductions.csr", "m first column value x y", 4 * 64 * 512 / WARP, None,
        {"m": 2**16, "nnz": 2**22, "n": 2**16}, bytes="8*nnz", other_order=True,
    ),
    _case(
        "dot, meta_reduction", "bench/programs/dot_reduction.mf", "dot_reduction", "n B s x y sum", {"n": N},
        _shapes("B s", (256, 16), (256, 1), (128, 16), (64, 16)),
        _floats(x="n", y="n", sum="1"), "sum",
        "reductions.dot_all", "n x y sum", 3 * N / WARP, None,
        {"n": 2**26}, bytes="8*n", other_order=True, options=SUMS,
    ),
    _case(
        "sums up to each number of a block", "bench/programs/scan.mf", "scan", "n B x y", {"n": N},
        _shapes("B", (256,)),
        _floats(x="n", y="n"), "y",
        "reductions.scan", "n x y", 3 * N / WARP, None,
        {"n": 2**26}, bytes="8*n", other_order=True,
    ),
    _case(
        "n-body", "bench/programs/nbody.mf", "nbody", NBODY, {"n": BODIES, "soft": np.float32(0.01)},
        _shapes("B", (64,), (128,), (256,)),
        _bodies, "ax ay az",
        "nbody.nbody", NBODY.replace(" B", ""), (12 + RECIPROCAL + ROOT) * BODIES**2 / WARP, COMPUTE,
        {"n": 2**16},
    ),
    _case(
        "n-body, tiles", "bench/programs/nbody_tiled.mf", "nbody_tiled", NBODY, {"n": BODIES, "soft": np.float32(0.01)},
        _shapes("B", (64,), (128,), (256,)),
        _bodies, "ax ay az",
        "nbody.nbody", NBODY.replace(" B", ""), (12 + RECIPROCAL + ROOT) * BODIES**2 / WARP, COMPUTE,
        {"n": 2**16},
    ),
)  # fmt: skip
