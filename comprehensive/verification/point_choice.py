"""Which points of a leaf are run: few, and as different as possible."""

from __future__ import annotations

from itertools import islice

from comprehensive.verification.points import INSTANCE, TOGETHER, Point, Points

MOST_VAST = 3
"""Points of a leaf that has only large ones."""

LEAST_LOOKED_AT = 100
"""So many parameter values are looked at, so that small ones alone do not fill the pool."""


def chosen_points(finder: Points, wanted: int, tries: int) -> dict[int, list[Point]]:
    """Return up to ``wanted`` points a leaf, those first that show something that no earlier one shows.

    Blocks walk the grid at a third of them and more, and at the first, where such points are found; blocks of several
    threads where there are any.  Every instance of a leaf has a point, where one is found, and so has its dynamic one.
    A leaf that has few points is looked for among larger blocks, one that has no point of a small block among full
    ones, and one that has none of these among large arrays and grids.
    """
    pool: dict[int, list[Point]] = {leaf.id: [] for leaf in finder.tree.leaves}
    enough = 6 * wanted
    walked: set[int] = set()
    unseen = {leaf.id: {f"{INSTANCE}{one.number}" for one in leaf.instances} for leaf in finder.tree.leaves}
    shown: dict[int, set[str]] = {leaf.id: set() for leaf in finder.tree.leaves}
    for number, point in enumerate(finder.parameter_points(tries), 1):
        for leaf, intervals in finder.leaves_at(point):
            for found in finder.at(point, leaf, intervals):
                together = TOGETHER in found.marks
                if len(pool[leaf]) < enough or (found.walks and leaf not in walked) or found.marks - shown[leaf]:
                    pool[leaf].append(found)
                    shown[leaf] |= found.marks
                    unseen[leaf] -= found.marks
                    walked |= {leaf} if together else set()
        if number >= LEAST_LOOKED_AT and all(
            len(points) >= enough and leaf in walked and not unseen[leaf] for leaf, points in pool.items()
        ):
            break
    few = {leaf for leaf, points in pool.items() if 0 < len(points) < wanted}
    if few:
        for point in finder.parameter_points(tries, large=True):
            for leaf, intervals in finder.leaves_at(point):
                if leaf in few:
                    pool[leaf] += (found for found in finder.at(point, leaf, intervals) if found not in pool[leaf])
            if all(len(pool[leaf]) >= wanted for leaf in few):
                break
    missing = {leaf for leaf, points in pool.items() if not points}
    if missing:
        for point in finder.parameter_points(tries, full=True):
            for leaf, intervals in finder.leaves_at(point):
                if leaf in missing:
                    pool[leaf] += finder.at(point, leaf, intervals)
            if all(len(pool[leaf]) >= enough for leaf in missing):
                break
    missing = {leaf for leaf, points in pool.items() if not points}
    if missing:
        # Sizes that the text has may be large; a few such points say much less than many small ones, but not nothing.
        for point in finder.parameter_points(tries, vast=True):
            for leaf, intervals in finder.leaves_at(point):
                if leaf in missing:
                    pool[leaf] += islice(finder.at(point, leaf, intervals), MOST_VAST - len(pool[leaf]))
            if all(len(pool[leaf]) >= MOST_VAST for leaf in missing):
                break
    return {leaf: _varied(points, wanted) for leaf, points in pool.items()}


def _varied(points: list[Point], wanted: int) -> list[Point]:
    """Order greedily by what is new, then thin out evenly."""
    chosen: list[Point] = []
    rest: list[Point] = []
    shown: set[str] = set()
    walkers = sorted((point for point in points if point.walks), key=lambda point: TOGETHER not in point.marks)
    kernels = sorted({mark for point in points for mark in point.marks if mark.startswith(INSTANCE)})
    first = [*walkers[:1], *(next(point for point in points if mark in point.marks) for mark in kernels)]
    for point in sorted(points, key=lambda point: point not in first):
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
