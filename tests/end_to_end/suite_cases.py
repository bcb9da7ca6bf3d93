"""Programs of PolyBench, Rodinia, SHOC and of deep learning in their natural spelling, and what each is run on.

The programs stand in ``suites``, one function each.  Sizes are odd on purpose: borders, single blocks and empty ranges
are what a tile meets.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """``shapes`` give the integer parameters, ``fills`` the C expression of element ``k`` where a default does not do.

    ``several`` lists arrays that are copied more than once to the device or back, each with the reason.
    """

    shapes: tuple[dict[str, int], ...]
    fills: dict[str, str] = field(default_factory=dict)
    several: dict[str, str] = field(default_factory=dict)


def at(**values):
    """Return the shapes whose values stand in a row: ``at(n=(5, 6), B=(1, 2))`` are two."""
    count = len(next(iter(values.values())))
    return tuple({name: row[number] for name, row in values.items()} for number in range(count))


ROWS = {"start": "k * 2", "first": "k * 2"}
DOMINANT = "k % (n + 1) == 0 ? 9.5f : (float)(k * 37 % 101) * 0.011f + 0.1f"

CASES = {
    "atax": Case(at(m=(13, 9, 5), n=(11, 16, 132), B=(4, 8, 128))),
    "attention": Case(at(heads=(2, 1, 1), len=(9, 8, 19), dim=(10, 4, 9), T=(4, 2, 8))),
    "backprop": Case(at(**{"in": (9, 16)}, hid=(11, 8), B=(4, 8))),
    "batched_small": Case(at(batch=(5, 3, 2), n=(3, 4, 12))),
    "bfs": Case(
        at(nodes=(17, 8), edges=(34, 16), B=(4, 8), depth=(1, 0)),
        {**ROWS, "edge": "k * 7 % nodes", "level": "k % 3 == 0 ? k % 2 : -1"},
    ),
    "bias_relu": Case(
        at(batch=(9, 4, 19, 17, 33), features=(13, 8, 18, 36, 36), B0=(2, 4, 16, 16, 32), B1=(8, 4, 16, 32, 32))
    ),
    "blackscholes": Case(at(optN=(19, 8), B=(4, 8))),
    "box_filter": Case(at(w=(13, 8), h=(9, 8), r=(2, 1), B=(4, 8))),
    "cfd_flux": Case(at(nelr=(13, 8), B=(4, 8)), {"elements_surrounding": "k % 5 == 0 ? -1 - k % 2 : k * 7 % nelr"}),
    "charges": Case(at(n=(13, 8), steps=(2, 1), B=(4, 8))),
    "cholesky": Case(
        at(n=(9, 8, 18), B=(4, 2, 16)),
        {"A": "k % (n + 1) == 0 ? 19.5 : 0.01 * (k / n + k % n)"},
        {"A": "the host takes a square root each step"},
    ),
    "conv2d": Case(
        at(N=(2, 1, 1), C=(2, 3, 2), K=(3, 1, 2), H=(7, 5, 6), W=(8, 6, 35), R=(3, 2, 2), S=(3, 1, 2), B=(8, 4, 32))
    ),
    "covariance": Case(at(m=(9, 8, 18, 28, 70), n=(7, 5, 5, 5, 3), B=(4, 2, 16, 24, 64))),
    "depthwise": Case(at(C=(2, 1, 2, 2), H=(7, 8, 9, 9), W=(9, 4, 18, 20), B0=(4, 2, 4, 8), B1=(4, 4, 16, 16))),
    "doitgen": Case(at(nr=(2, 3, 2, 1), nq=(3, 2, 2, 2), np=(9, 8, 33, 132), B=(4, 8, 32, 128))),
    "embedding": Case(
        at(tokens=(5, 3, 4), vocabulary=(7, 4, 5), dim=(9, 8, 34), B=(4, 8, 32)), {"token": "k * 5 % vocabulary"}
    ),
    "equalize": Case(at(npix=(137, 64), B=(16, 8)), {"img": "k * 37 % 251"}),
    "fdtd_2d": Case(
        at(tmax=(4, 3, 2, 2, 1, 1), nx=(9, 8, 18, 25, 19, 25), ny=(11, 8, 17, 28, 13, 26), B=(4, 2, 16, 24, 8, 24))
    ),
    "floyd_warshall": Case(at(n=(9, 8, 18, 28), B=(4, 2, 16, 24)), {"path": "k * 37 % 101 + 1"}),
    "gemm": Case(at(ni=(9, 8), nj=(7, 8), nk=(10, 4), T=(4, 2))),
    "gemver": Case(
        at(n=(13, 8, 18, 28, 132, 100, 20), B=(4, 8, 16, 24, 128, 32, 16)), several={"x": "the host adds to all of it"}
    ),
    "gesummv": Case(at(n=(13, 8, 130), B=(4, 8, 64))),
    "gramschmidt": Case(
        at(m=(9, 6, 4), n=(5, 4, 132), B=(4, 2, 128)),
        several={"A": "the host sums a column each step", "R": "the host writes an element each step"},
    ),
    "hotspot": Case(at(rows=(9, 8, 18), cols=(11, 8, 20), B=(4, 2, 16))),
    "hotspot3d": Case(at(numiter=(3, 2, 1), nx=(9, 8, 34), ny=(7, 4, 17), nz=(3, 2, 2), TX=(4, 8, 32), TY=(2, 4, 16))),
    "im2col": Case(at(C=(2, 1), H=(6, 5), W=(7, 5), R=(3, 2), B=(8, 4))),
    "jacobi_1d": Case(at(steps=(5, 4, 2), n=(19, 10, 262), B=(4, 8, 128))),
    "kmeans": Case(at(npoints=(17, 8, 130), nfeatures=(3, 4, 5), nclusters=(4, 2, 3), B=(4, 8, 64))),
    "layernorm": Case(at(rows=(9, 8), cols=(7, 4), B=(4, 8))),
    "lbm": Case(
        at(steps=(3, 2), nx=(9, 8), ny=(7, 8), BX=(4, 8), BY=(2, 4)),
        {"solid": "k % 11 == 0"},
        several={"f0": "what is written depends on data, and the buffer that is read becomes the one that is written"},
    ),
    "life": Case(at(gens=(3, 2, 2), n=(9, 8, 17), m=(11, 8, 36), B=(4, 2, 16)), {"a": "k * 37 % 101 % 3 == 0"}),
    "linear_product": Case(at(n=(9, 8), T=(4, 2))),
    "lu": Case(at(n=(9, 8, 18, 36), B=(4, 2, 16, 32)), {"A": DOMINANT}),
    "lud_diag": Case(
        at(matrix_dim=(8, 12)), {"m": "k % (matrix_dim + 1) == 0 ? 9.5f : (float)(k * 37 % 101) * 0.011f + 0.1f"}
    ),
    "mandel": Case(at(w=(13, 8), h=(5, 8), maxiter=(20, 9), B=(4, 8))),
    "maxpool": Case(at(C=(2, 1), H=(5, 4), W=(7, 4), B=(8, 4))),
    "md": Case(at(atoms=(17, 8), most=(5, 3), B=(4, 8)), {"neighbour": "k * 7 % atoms"}),
    "median3": Case(at(w=(13, 8), h=(9, 8), B0=(4, 2), B1=(4, 8)), {"img": "k * 37 % 251"}),
    "mvt": Case(at(n=(13, 8, 132, 100), B=(4, 8, 128, 32))),
    "nearest": Case(at(n=(19, 8, 260), B=(4, 8, 128))),
    "needle": Case(at(n=(9, 4), B=(4, 2), penalty=(3, 10))),
    "pathfinder": Case(at(rows=(6, 5), cols=(13, 8), B=(4, 8))),
    "reduction": Case(at(n=(37, 16), B=(8, 4))),
    "scan": Case(at(n=(37, 16, 300, 130), B=(8, 4, 128, 64))),
    "sobel": Case(at(rows=(9, 8, 17), cols=(11, 35, 40), B0=(4, 2, 8), B1=(8, 32, 32))),
    "sobel_bytes": Case(
        at(width=(13, 8, 34), height=(9, 8, 17), TX=(4, 8, 32), TY=(2, 4, 16)), {"src": "k * 37 % 251"}
    ),
    "softmax": Case(at(rows=(9, 8), cols=(7, 4), B=(4, 8))),
    "spmv_csr": Case(at(rows=(13, 8), nonzeros=(26, 16), cols=(9, 8), B=(4, 8)), {**ROWS, "column": "k * 5 % cols"}),
    "srad": Case(at(rows=(9, 8, 18), cols=(11, 8, 20), B=(4, 2, 16))),
    "stencil_9pt": Case(at(n=(9, 8, 19, 35), m=(11, 8, 20, 36), B0=(4, 2, 16, 32), B1=(4, 8, 16, 32))),
    "syrk": Case(at(n=(9, 8, 18, 28), m=(7, 4, 5, 3), T=(4, 2, 16, 24))),
    "transposed": Case(at(rows=(9, 8), cols=(11, 8), T=(4, 2))),
    "triad": Case(at(n=(19, 8, 260), B=(4, 8, 128))),
    "trisolv": Case(at(n=(13, 8), B=(4, 8)), {"L": DOMINANT}, {"x": "the host divides an element each step"}),
    "two_mm": Case(at(n=(9, 8, 18, 28), T=(4, 2, 16, 24))),
    "wave": Case(at(nt=(4, 3), n=(19, 8), B=(4, 8))),
}
