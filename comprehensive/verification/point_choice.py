"""Which points of a variant are run: few, and as different as possible."""

from __future__ import annotations

from collections.abc import Iterator

from metafork.comprehensive.verification.point_conditions import Values
from metafork.comprehensive.verification.points import TOGETHER, Point, Points

MOST_VAST = 3
"""Points of a variant that has only large ones: the smallest of eight times as many."""

LEAST_LOOKED_AT = 100
"""So many parameter values are looked at, so that small ones alone do not fill the pool."""


MOST_OF_INSTANCE = 2
"""Points of an instance: its sizes are numbers, and may be large."""

Key = tuple[int, int]
"""A leaf and a variant of it."""


def chosen_points(finder: Points, wanted: int, tries: int) -> dict[Key, list[Point]]:
    """Return up to ``wanted`` points a variant, those first that show something that no earlier one shows.

    Blocks walk the grid at a third of them and more, and at the first, where such points are found; blocks of several
    threads where there are any.  A variant that has few points is looked for among larger blocks, then among full ones,
    and one that has none among large arrays and grids.
    """
    variants = {(leaf.id, one.number): one for leaf in finder.tree.leaves for one in leaf.variants}
    pool: dict[Key, list[Point]] = {key: [] for key in variants}
    enough = {key: 1 if one.values else 6 * wanted for key, one in variants.items()}
    dynamic = {key for key, one in variants.items() if not one.values}
    walked: set[Key] = {key for key in variants if key not in dynamic}
    shown: dict[Key, set[str]] = {key: set() for key in variants}
    for number, point in enumerate(finder.parameter_points(tries), 1):
        for found in _at(finder, point):
            key, together = (found.leaf, found.variant), TOGETHER in found.marks
            if len(pool[key]) < enough[key] or (found.walks and key not in walked) or found.marks - shown[key]:
                pool[key].append(found)
                shown[key] |= found.marks
                walked |= {key} if together else set()
        if number >= LEAST_LOOKED_AT and all(
            len(points) >= enough[key] and key in walked for key, points in pool.items()
        ):
            break
    few = {key for key, points in pool.items() if 0 < len(points) < wanted and key in dynamic}
    if few:
        for point in finder.parameter_points(tries, large=True):
            for found in _at(finder, point):
                key = found.leaf, found.variant
                if key in few and found not in pool[key]:
                    pool[key].append(found)
            if all(len(pool[key]) >= wanted for key in few):
                break
    # Sizes that the text has may be large; a few such points say much less than many small ones, but not nothing.
    for kind, most in (("full", 6 * wanted), ("vast", 8 * MOST_VAST)):
        least = 1 if kind == "vast" else wanted
        missing = {key for key, points in pool.items() if len(points) < (least if key in dynamic else 1)}
        for point in finder.parameter_points(tries, **{kind: True}) if missing else ():
            for found in _at(finder, point):
                key = found.leaf, found.variant
                if key in missing and len(pool[key]) < most and found not in pool[key]:
                    pool[key].append(found)
            if all(len(pool[key]) >= most for key in missing):
                break
        if kind == "vast":
            for key in missing:
                by_size = sorted(pool[key], key=finder.size)
                walkers = [point for point in by_size if point.walks]
                pool[key] = [*walkers[:1], *(point for point in by_size if point not in walkers[:1])][:MOST_VAST]
    shares = {key: wanted if key in dynamic else min(wanted, MOST_OF_INSTANCE) for key in variants}
    return {key: _varied(points, shares[key]) for key, points in pool.items()}


def _at(finder: Points, point: Values) -> Iterator[Point]:
    """Yield the points of all leaves at some parameters."""
    for leaf, intervals in finder.leaves_at(point):
        yield from finder.at(point, leaf, intervals)


def _varied(points: list[Point], wanted: int) -> list[Point]:
    """Order greedily by what is new, then thin out evenly."""
    chosen: list[Point] = []
    rest: list[Point] = []
    shown: set[str] = set()
    walkers = sorted((point for point in points if point.walks), key=lambda point: TOGETHER not in point.marks)
    for point in sorted(points, key=lambda point: point not in walkers[:1]):
        if point.marks - shown:
            shown |= point.marks
            chosen.append(point)
        else:
            rest.append(point)
    together = [point for point in rest if TOGETHER in point.marks]
    missing = wanted // 3 - sum(TOGETHER in point.marks for point in chosen)
    chosen += _thinned(together, min(missing, wanted - len(chosen)))
    chosen += _thinned([point for point in rest if point not in chosen], wanted - len(chosen))
    return chosen[:wanted]


def _thinned(points: list[Point], missing: int) -> list[Point]:
    return points[:: max(1, len(points) // missing)][:missing] if missing > 0 else []
