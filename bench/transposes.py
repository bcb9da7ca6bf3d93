"""Swizzle Inventor's Table 3: the transpositions of m registers on n lanes that have a solution, up to a size.

Each is searched in a process of its own, level by level, until one has a solution or the processor time is up.  A row
of ``bench/results/transposes.json`` says which: ``level``, ``shuffles`` and ``selects`` of the first solution;
``provedNone``, when no level has one; ``refused``, a level with too many options; or ``limitSeconds``, when the time
was up.  ``without`` has the levels that were searched through.  The picture ``transposes.svg`` has all of it.

What is known is not searched again, except with more time where that was up: delete the table to make it anew.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, product
from pathlib import Path

ROOT = Path(__file__).parents[1]
SKETCH = ROOT / "examples" / "swizzle" / "crc.swz"
RESULTS = ROOT / "bench" / "results"
TABLE = RESULTS / "transposes.json"
# A run that is broken off loses no more than so many rows.
KEPT = 64
# Level 2 only adds conditions, and the sketch has none.
LEVELS = (0, 1, 3, 4)


def search(m: int, n: int, say: Callable[[dict], object]) -> None:
    """Say of each level whether it has a solution, up to the first that has; a level that is too wide is refused."""
    from metafork.ir.messages.diagnostics import DiagnosticsError
    from metafork.ir.messages.source import Source
    from metafork.swizzle.language.elaborate import load
    from metafork.swizzle.output.ranking import priced
    from metafork.swizzle.search.search import solutions

    source = Source(SKETCH.name, SKETCH.read_text())
    began = time.process_time()
    for level in LEVELS:
        try:
            problem = load(source, {"s": m, "n": n, "level": level})
        except DiagnosticsError:
            say({"refused": level})
            return
        found = solutions(problem, limit=1)
        seconds = round(time.process_time() - began, 3)
        if found:
            signal.setitimer(signal.ITIMER_PROF, 0)
            cost = priced(problem, found[0], architecture="sm_70", objective="cost").cost
            say({"level": level, "shuffles": cost.shuffles, "selects": cost.selects, "cpuSeconds": seconds})
            return
        say({"without": level, "cpuSeconds": seconds})


def row(m: int, n: int, limit: float) -> dict:
    """Return what a process of its own says until its processor time is up."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_PROF, limit)
        search(m, n, lambda said: os.write(writer, (json.dumps(said) + "\n").encode()))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        said = [json.loads(line) for line in file]
    _, status = os.waitpid(child, 0)
    if status not in (0, signal.SIGPROF):
        raise RuntimeError(f"the search of {m} x {n} ended with status {status}")
    result = {"m": m, "n": n, "without": [one["without"] for one in said if "without" in one]}
    if said and "level" in said[-1]:
        return {**result, **said[-1]}
    if status == 0:
        return {**result, **({"refused": said[-1]["refused"]} if "refused" in said[-1] else {"provedNone": True})}
    return {**result, "limitSeconds": limit}


def write(most: int, limit: float) -> None:
    """Search for what is not known up to a size, print how many there are of each kind, and write table and picture."""
    known = {(one["m"], one["n"]): one for one in json.loads(TABLE.read_text())["rows"]} if TABLE.exists() else {}
    search(2, 2, lambda _: None)  # its modules are loaded once
    sizes = sorted(product(range(1, most + 1), repeat=2), key=lambda size: (size[0] * size[1], size))
    missing = [
        size for size in sizes if known.get(size, {}).get("limitSeconds", 0 if size not in known else limit) < limit
    ]
    for start in range(0, len(missing), KEPT):
        some = missing[start : start + KEPT]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            known.update(zip(some, pool.map(lambda size: row(*size, limit), some), strict=True))
        keep([known[size] for size in sorted(known)])
    found = [known[size] for size in sorted(known)]
    kinds = [kind(one) for one in found]
    for name in sorted(set(kinds)):
        print(f"{name}: {kinds.count(name)} of {len(found)}")
    (RESULTS / "transposes.svg").write_text(picture(found))


def keep(found: list[dict]) -> None:
    """Write the table, in place of what was there."""
    lines = ",\n".join(f"  {json.dumps(one)}" for one in found)
    new = TABLE.with_suffix(".new")
    new.write_text(f'{{"format": "metafork-bench-transposes", "rows": [\n{lines}\n]}}\n')
    new.replace(TABLE)


def kind(one: dict) -> str:
    """Return what became of a transposition, in words."""
    if "level" in one:
        return f"level {one['level']}"
    if "refused" in one:
        return f"refused at level {one['refused']}"
    return "proved to have none" if "provedNone" in one else f"not solved within {one['limitSeconds']:g} s"


# Light to dark; a panel has one more limit than its first colour.
SHADES = ["#dbe9f6", "#a9cfe5", "#5ba3cf", "#2070b4", "#08306b"]
NOT_SOLVED, REFUSED, NONE = "#d9d9d9", "#f4b183", "#c00000"


def shade(value: float | None, limits: list[float]) -> str:
    """Return the colour of a value: that of the first limit it does not exceed."""
    if value is None:
        return NOT_SOLVED
    return SHADES[next((number for number, limit in enumerate(limits) if value <= limit), len(limits))]


def picture(found: list[dict]) -> str:
    """Draw four panels, a square for each m and n: the level, the time, the shuffles and the selects."""
    most = max(one["m"] for one in found)
    panels: list[tuple[str, list[tuple[str, str]], Callable[[dict], str]]] = []
    levels = {level: SHADES[number + 1] for number, level in enumerate(LEVELS)}
    others = {"refused": REFUSED, "provedNone": NONE}

    def level(one: dict) -> str:
        return (
            levels[one["level"]] if "level" in one else next((others[key] for key in others if key in one), NOT_SOLVED)
        )

    key = [(f"level {number}", colour) for number, colour in levels.items()]
    key += [("not in time", NOT_SOLVED), ("refused", REFUSED), ("proved to have none", NONE)]
    panels.append(("Level of the first solution", key, level))
    for title, name, limits, per in (
        ("Seconds of the search", "cpuSeconds", [0.05, 0.1, 0.2, 0.3], lambda _: 1),
        ("Shuffles per element", "shuffles", [0, 0.5, 1, 2], lambda one: one["m"]),
        ("Selects per element", "selects", [2, 4, 8, 16], lambda one: one["m"]),
    ):

        def value(one: dict, name: str = name, limits: list[float] = limits, per: Callable = per) -> str:
            return shade(one[name] / per(one) if "level" in one else None, limits)

        names = [f"up to {limit:g}" if limit else "0" for limit in limits] + ["more"]
        panels.append((title, [*zip(names, SHADES, strict=True), ("none found", NOT_SOLVED)], value))
    side, gap = 6 * most, 60
    parts = []
    for number, (title, entries, colour) in enumerate(panels):
        x, y = 40 + (side + gap) * (number % 2), 40 + (side + 2 * gap) * (number // 2)
        parts.append(f'<g transform="translate({x},{y})"><text y="-22" font-weight="bold">{title}</text>')
        parts += [f'<text x="{6 * one - 3}" y="-5" text-anchor="middle">{one}</text>' for one in ticks(most)]
        parts += [f'<text x="-6" y="{6 * one + 1}" text-anchor="end">{one}</text>' for one in ticks(most)]
        parts += squares(found, colour)
        for place, (name, fill) in enumerate(entries):
            left, top = 125 * (place % 3), side + 12 + 17 * (place // 3)
            parts.append(f'<rect x="{left}" y="{top}" width="11" height="11" fill="{fill}"/>')
            parts.append(f'<text x="{left + 16}" y="{top + 10}">{name}</text>')
        parts.append("</g>")
    width, height = 2 * side + gap + 80, 2 * (side + 2 * gap)
    style = "<style>text{font-family:sans-serif;font-size:12px}</style>"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">{style}'
    foot = f'<text x="40" y="{height - 8}">m registers downwards, n lanes to the right</text>'
    return head + '<rect width="100%" height="100%" fill="#fff"/>' + "\n".join(parts) + foot + "</svg>\n"


def ticks(most: int) -> list[int]:
    """Return the sizes that are written at the axes."""
    return [1, *range(8, most + 1, 8)]


def squares(found: list[dict], colour: Callable[[dict], str]) -> Iterator[str]:
    """Yield a path for each colour, with a stroke for each run of squares."""
    runs: dict[str, list[str]] = {}
    for m, line in groupby(found, key=lambda one: one["m"]):
        for fill, run in groupby(line, key=colour):
            some = list(run)
            runs.setdefault(fill, []).append(f"M{6 * some[0]['n'] - 6} {6 * m - 3}h{6 * len(some)}")
    for fill, strokes in runs.items():
        yield f'<path d="{"".join(strokes)}" stroke="{fill}" stroke-width="6" shape-rendering="crispEdges"/>'
