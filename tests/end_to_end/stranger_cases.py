"""Programs of strangers: kernels shaped as those of public mini-apps, networks, image, lattice and graph codes.

They stand in ``strangers``, with the annotations that the tutorial teaches, and nothing else to suit the tool.  What is
not accepted has the code of its diagnostic and the reason.
"""

from msgspec import Struct


class Stranger(Struct, frozen=True):
    """``refused`` is the code of what stands in the way, ``why`` says it; ``warned`` are codes of warnings.

    ``reassociate`` is true where the message asks for that option.  ``random`` is false where ``verify`` knows no data
    that fits: indices that are read, or sizes that are.
    """

    refused: str = ""
    why: str = ""
    warned: tuple[str, ...] = ()
    random: bool = True
    reassociate: bool = False


STRANGERS = {
    "bilateral": Stranger(random=False),
    "breadth_first": Stranger(random=False, warned=("MF0403", "MF0405")),
    "cluster_points": Stranger(random=False),
    "cosine_blocks": Stranger(random=False),
    "count_triangles": Stranger(),
    "cross_sections": Stranger(),
    "edge_rows": Stranger(),
    "element_volumes": Stranger(random=False),
    "hash_messages": Stranger(random=False, warned=("MF0403", "MF0405")),
    "ideal_gas": Stranger(random=False),
    "image_columns": Stranger(),
    "ising_checkerboard": Stranger(random=False, warned=("MF0403", "MF0405")),
    "lattice_d2q9": Stranger(),
    "lattice_d3q19": Stranger(),
    "layer_activation": Stranger(),
    "lennard_jones": Stranger(random=False),
    "max_pool": Stranger(),
    "median_filter": Stranger(),
    "option_prices": Stranger(random=False, warned=("MF0403", "MF0405")),
    "page_rank": Stranger(random=False),
    "quantized_blocks": Stranger(),
    "relax_edges": Stranger(random=False),
    "scatter_charge": Stranger(random=False, reassociate=True),
    "sparse_rows": Stranger(random=False, warned=("MF0405",)),
    "transformer_layernorm": Stranger(),
    "transformer_matmul": Stranger(),
    "transformer_softmax": Stranger(),
    "triad": Stranger(),
    "waxpby": Stranger(random=False),
    "ycbcr_rows": Stranger(warned=("MF0403",)),
}
