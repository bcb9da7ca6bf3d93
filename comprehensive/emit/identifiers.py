"""Identifiers of the input in C and C++ text: what would clash there gets trailing underscores.

Everything that generated text declares itself starts with ``metafork_`` or with the schedule's own name, so only
reserved words, macros of common headers, and the types that the text uses can meet a name of the input.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from metafork.printing.cuda import is_reserved

_TYPES = """
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t ptrdiff_t intptr_t uintptr_t va_list
    cudaError_t cudaStream_t nullptr_t
"""
_RESERVED = frozenset(_TYPES.split())


def _clashes(name: str) -> bool:
    return is_reserved(name) or name in _RESERVED or name.startswith("metafork_")


def safe_identifiers(names: Iterable[str], taken: Collection[str] = ()) -> dict[str, str]:
    """Return a safe identifier for each name, all different and none in ``taken``."""
    used = set(taken)
    chosen: dict[str, str] = {}
    for name in names:
        if name in chosen:
            continue
        free = name
        if free.startswith(("metafork_", "METAFORK_", "CUDA_", "CUDART_", "_")) and _clashes(free):
            free = f"u{free}"
        while _clashes(free) or free in used:
            free += "_"
        chosen[name] = free
        used.add(free)
    return chosen


def c_string(text: str) -> str:
    """Return a C string literal of ASCII text."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return '"' + escaped.replace("?", "\\?") + '"'


def c_comment(text: str) -> str:
    """Return text that can stand inside a C comment."""
    return text.replace("*/", "* /").replace("/*", "/ *")
