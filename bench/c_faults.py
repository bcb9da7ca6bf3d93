"""Small faults in C text: what stands where, and what is put there instead.

Faults are made in code alone: comments, strings and lines of the preprocessor stay as they are.  Comparisons and sums
have a space on both sides; without, it is a template, a sign or a pointer.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_NO_CODE = re.compile(
    r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | ^[ \t]*\#(?:\\\n|[^\n])*""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_SWAPPED = {
    "comparison": {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    "logical": {"&&": "||", "||": "&&"},
    "sum": {"+": "-", "-": "+", "+=": "-=", "-=": "+="},
}
_NUMBER = re.compile(r"(?<![\w.])(\d+)([uUlL]*)(?![\w.])")
_CALL = re.compile(r"(?<=[;{}\n])[ \t]*(?!return\b|else\b|goto\b)[A-Za-z_]\w*\([^;{}\n]*\);")
_CONDITION = re.compile(r"\bif \(")


@dataclass(frozen=True, slots=True)
class Fault:
    """A piece of a text, from ``start`` to ``end``, with another in its place."""

    operator: str
    start: int
    end: int
    other: str

    def put_into(self, text: str) -> str:
        """Return the text with the fault."""
        return text[: self.start] + self.other + text[self.end :]


def c_faults(text: str) -> Iterator[Fault]:
    """Yield the faults that can be made, operator by operator, in the order of the text."""
    code = _NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    for operator, others in _SWAPPED.items():
        tokens = "|".join(map(re.escape, sorted(others, key=len, reverse=True)))
        for found in re.finditer(rf"(?<= )(?:{tokens})(?= )", code):
            yield Fault(operator, *found.span(), others[found[0]])
    for found in _NUMBER.finditer(code):
        for step in (1, -1):
            if (number := int(found[1]) + step) >= 0:
                yield Fault("number", *found.span(), f"{number}{found[2]}")
    for found in _CONDITION.finditer(code):
        end = _closed(code, found.end())
        yield Fault("condition", found.end(), end, f"!({text[found.end() : end]})")
    for found in _CALL.finditer(code):
        yield Fault("call", *found.span(), f"{' ' * (len(found[0]) - len(found[0].lstrip()))};")


def _closed(code: str, start: int) -> int:
    """Return the place of the parenthesis that closes the one before ``start``."""
    depth = 1
    for place in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[place], 0)
        if depth == 0:
            return place
    return len(code)


TARGETS = ("cuda", "ptx", "opencl")
_FLAGS = ("-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-Wno-unused-function")


@cache
def accepted(include: Path, name: str, text: str) -> list[str]:
    """Return the targets for which a header compiles if it has this text; ``include`` has the other headers."""
    with tempfile.TemporaryDirectory(prefix="mutants_") as folder:
        shutil.copytree(include, folder, dirs_exist_ok=True)
        headers = Path(folder) / "metafork"
        (headers / name).write_text(text)
        (headers / "device_text.h").write_text('static const char *const metafork_device_text[] = {""};\n')
        unit = Path(folder) / "unit.c"
        unit.write_text(f'#include "metafork/dispatch.h"\n#include "metafork/{name}"\n')
        return [target for target in TARGETS if _compiles(unit, target)]


def _compiles(unit: Path, target: str) -> bool:
    language = ["g++", "-x", "c++", "-std=c++17", "-DMETAFORK_CPU"] if target == "cuda" else ["gcc", "-std=gnu11"]
    header = f'-DMETAFORK_TARGET_HEADER="metafork/target_{target}.h"'
    command = [*language, *_FLAGS, header, f"-I{unit.parent}", unit]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
