"""Programs in the shape of gpucc's benchmark suites (its section 5.1), at sizes that the rig executes.

They stand with the tests (``tests/end_to_end/suites``), which compare their results at odd sizes.  No experts: what
LLVM makes of our kernels is compared with what nvcc makes of them.
"""

from dataclasses import dataclass

import numpy as np
from speed_cases import extents


@dataclass(frozen=True)
class Program:
    """``arrays`` gives extents by name; an index array has its values in ``below``: random numbers below a size."""

    name: str
    function: str
    arguments: str
    sizes: dict
    shape: dict
    extents: dict
    results: tuple[str, ...]
    kinds: dict
    ulp: int = 4
    other_order = False
    options = ()

    @property
    def source(self):
        """The file, from the root of the repository."""
        return f"tests/end_to_end/suites/{self.function}.mf"

    @property
    def shapes(self):
        """The one block shape."""
        return (self.shape,)

    def arrays(self, random, sizes):
        """Return new arrays."""
        return {name: self._array(random, sizes, name, text) for name, text in self.extents.items()}

    def _array(self, random, sizes, name, text):
        shape, kind = extents(text, sizes), self.kinds.get(name, "float")
        match kind.split():
            case ["float"]:
                return random.random(shape, np.float32) + np.float32(0.5)
            case ["double"]:
                return random.random(shape)
            case ["rows"]:
                return (np.arange(*shape) * (sizes["nonzeros"] // sizes["rows"])).astype(np.int32)
            case ["below", most]:
                return random.integers(0, sizes.get(most) or int(most), shape, np.int32)


def _program(suite, function, arguments, sizes, shape, results, kinds=None, ulp=4, **extents_of):
    numbers = {name: value if isinstance(value, int) else np.float32(value) for name, value in sizes.items()}
    name = f"{suite}: {function}"
    return Program(name, function, arguments, numbers, shape, extents_of, tuple(results.split()), kinds or {}, ulp)


PROGRAMS = (
    _program(
        "Rodinia", "hotspot", "rows cols B step Rx Ry Rz temp power result",
        {"rows": 256, "cols": 256, "step": 0.1, "Rx": 0.3, "Ry": 0.2, "Rz": 0.5}, {"B": 16}, "result",
        temp="rows cols", power="rows cols", result="rows cols",
    ),
    _program(
        "Rodinia", "srad", "rows cols B q0 J c", {"rows": 256, "cols": 256, "q0": 0.5}, {"B": 16}, "c",
        J="rows cols", c="rows cols",
    ),
    _program(
        "Rodinia", "pathfinder", "rows cols B wall src dst", {"rows": 9, "cols": 4096}, {"B": 128}, "src dst",
        {"wall": "below 10", "src": "below 10", "dst": "below 10"}, wall="rows cols", src="cols", dst="cols",
    ),
    _program(
        "Rodinia", "kmeans", "npoints nfeatures nclusters B feature cluster membership",
        {"npoints": 4096, "nfeatures": 16, "nclusters": 5}, {"B": 128}, "membership", {"membership": "below 5"},
        feature="npoints nfeatures", cluster="nclusters nfeatures", membership="npoints",
    ),
    _program(
        "Rodinia", "nearest", "n B lat lng latitude longitude distance", {"n": 65536, "lat": 30.0, "lng": 90.0},
        {"B": 128}, "distance", latitude="n", longitude="n", distance="n",
    ),
    _program(
        "SHOC", "md", "atoms most B neighbour x y z force", {"atoms": 2048, "most": 32}, {"B": 128}, "force",
        {"neighbour": "below atoms"}, neighbour="most atoms", x="atoms", y="atoms", z="atoms", force="atoms",
    ),
    _program(
        "SHOC", "reduction", "n B in out", {"n": 65536}, {"B": 128}, "out", {"in": "below 100", "out": "below 100"},
        **{"in": "n", "out": "(n+127)//128"},
    ),
    _program(
        "SHOC", "scan", "n B in out", {"n": 65536}, {"B": 128}, "out", {"in": "below 100", "out": "below 100"},
        **{"in": "n", "out": "n"},
    ),
    _program(
        "SHOC", "spmv_csr", "rows nonzeros cols B start column value x y",
        {"rows": 4096, "nonzeros": 65536, "cols": 4096}, {"B": 128}, "y",
        {"start": "rows", "column": "below cols", "value": "double", "x": "double", "y": "double"},
        start="rows+1", column="nonzeros", value="nonzeros", x="cols", y="rows",
    ),
    _program(
        "SHOC", "stencil_9pt", "n m B0 B1 wc wn wd in out", {"n": 256, "m": 256, "wc": 0.5, "wn": 0.25, "wd": 0.125},
        {"B0": 8, "B1": 32}, "out", **{"in": "n+2 m+2", "out": "n+2 m+2"},
    ),
    _program("SHOC", "triad", "n B s A Bv C", {"n": 65536, "s": 1.5}, {"B": 128}, "C", A="n", Bv="n", C="n"),
    _program(
        "Tensor", "bias_relu", "batch features B0 B1 bias x", {"batch": 256, "features": 256}, {"B0": 8, "B1": 32}, "x",
        bias="features", x="batch features",
    ),
    _program(
        "Tensor", "conv2d", "N C K H W R S B in w bias out",
        {"N": 2, "C": 4, "K": 8, "H": 34, "W": 66, "R": 3, "S": 3}, {"B": 32}, "out",
        w="K C R S", bias="K", **{"in": "N C H W", "out": "N K H-R+1 W-S+1"},
    ),
    _program(
        "Tensor", "linear_product", "n T A B C", {"n": 128}, {"T": 16}, "C",
        {"A": "double", "B": "double", "C": "double"}, A="n n", B="n n", C="n n",
    ),
    _program(
        "Tensor", "transposed", "rows cols T in out", {"rows": 256, "cols": 256}, {"T": 16}, "out",
        **{"in": "rows cols", "out": "cols rows"},
    ),
    _program(
        "Tensor", "maxpool", "C H W B in out", {"C": 4, "H": 64, "W": 64}, {"B": 64}, "out",
        **{"in": "C 2*H 2*W", "out": "C H W"},
    ),
    _program(
        "Tensor", "softmax", "rows cols B in out", {"rows": 256, "cols": 64}, {"B": 64}, "out",
        **{"in": "rows cols", "out": "rows cols"},
    ),
)  # fmt: skip
