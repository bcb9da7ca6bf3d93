"""Programs to transform, with the parameters to run them with: what stands before the transformation in goldens."""

from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("*/*.mf"))
AFTER = "\n/* after"


def before(path):
    return path.read_text().partition(AFTER)[0]


def points(path):
    head = before(path).splitlines()[0].removeprefix("/* at ").removesuffix(" */")
    return [
        {name: int(number) for name, _, number in (part.partition("=") for part in point.split())}
        for point in head.split(";")
    ]
