"""Draws ``rooms.svg`` from the import contracts of ``pyproject.toml``: ``python docs/rooms.py``."""

from __future__ import annotations

import tomllib
from pathlib import Path

from metafork.comprehensive.tree.render import svg

FOLDER = Path(__file__).parent
HOUSE = ("comprehensive", "strategies", "evaluators")


def arrows() -> dict[str, tuple[str, ...]]:
    """Return the rooms of ``metafork`` and what the contracts let each of them use of the others."""
    text = (FOLDER.parent / "pyproject.toml").read_text(encoding="utf-8")
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    forbidden = {
        contract["source_modules"][0].removeprefix("metafork."): contract["forbidden_modules"]
        for contract in contracts
        if contract["type"] == "forbidden"
        and len(contract["source_modules"]) == 1
        and contract["source_modules"][0].count(".") == 1
        and contract["source_modules"][0].removeprefix("metafork.") not in HOUSE
    }
    return {
        room: tuple(other for other in forbidden if other != room and f"metafork.{other}" not in names)
        for room, names in forbidden.items()
    }


def dot() -> str:
    """Return the drawing as DOT text; the product's three upper floors may use all below them."""
    lines = [
        'digraph rooms { graph [ranksep=0.45, nodesep=0.3, pad=0.2, compound=true, fontname="Helvetica"];',
        'node [shape=box, style="rounded,filled", fillcolor="#eef2f6", fontname="Helvetica", fontsize=12];',
        'edge [color="#556677", arrowsize=0.7];',
        'subgraph cluster_metafork { label="metafork/"; labeljust=l; style=rounded; color="#8899aa";',
    ]
    rooms = arrows()
    lines += [f'"{room}" [fillcolor="#ffffff"];' for room in rooms]
    lines += [f'"{room}" -> "{other}";' for room, others in rooms.items() for other in others]
    lines.append("}")
    for above, below in zip(HOUSE, (*HOUSE[1:], "lowering"), strict=True):
        edge = ' [lhead="cluster_metafork", penwidth=2, minlen=2]' if below == "lowering" else " [penwidth=2]"
        lines.append(f'"{above}" -> "{below}"{edge};')
    return "\n".join([*lines, "}"]) + "\n"


if __name__ == "__main__":
    (FOLDER / "rooms.svg").write_text(svg(dot()), encoding="utf-8")
