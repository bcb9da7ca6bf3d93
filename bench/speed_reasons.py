"""Why a program of instructions.py is above its goal, as read from its kernel; shown only where it is."""

_CUBE = (
    "four rows of eight planes per thread, one column: 3.75 loads per result of 4 bytes each, and an address for each "
    "of its rows; the expert's has two columns"
)

REASONS = {
    "transposition": (
        "one padded tile as the expert's, but loops of unknown trips around both accesses, and a quotient that places "
        "each thread in the tile's rows"
    ),
    "1D mean of three": (
        "each result loads its three points, from the first-level cache: an expert's block has one request where "
        "neighbours share a sector"
    ),
    "2D Jacobi, nine points": ("eight rows a thread, and one column: each row is loaded once, three loads per result"),
    "3D Jacobi, T": _CUBE,
    "3D heat, double, T": _CUBE,
    "axpy": ("one element an access where the expert's takes four, with index arithmetic for each"),
    "Floyd-Warshall": (
        "beside column k a thread stores two columns and one, a sector each; the expert's stores column k as it was, "
        "while other threads read it"
    ),
    "n-body": ("a shared load for each coordinate of a body, one of 16 bytes for all in the expert's"),
    "n-body, tiles": ("four shared loads a body instead of one of 16 bytes"),
}
