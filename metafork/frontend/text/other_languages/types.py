"""Types of CUDA, C++ and C that kernels do not have, where a variable has one, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from metafork.frontend.text.other_languages.advice import Advice, spelled
from metafork.frontend.text.tokens import Token, TokenKind, hull
from metafork.ir.messages.source import Span

_PAIRS = {"__half2": "half", "half2": "half", "__nv_bfloat162": "bfloat16", "nv_bfloat162": "bfloat16"}
_SMALL = frozenset({"__nv_fp8_e4m3", "__nv_fp8_e5m2", "bf16", "fp16"})
_VECTOR = re.compile(r"(u?)(char|short|int|longlong|long|float|double)([1-4])")
_COMPLEX = re.compile(r"(cu|thrust::)?(float|double|Float|Double)?_?([Cc]omplex)?")
_WIDE = {
    "__int128": "long long",
    "__float128": "double",
    "_Float128": "double",
    "_Float64": "double",
    "_Float32": "float",
}
_OF_FUNCTIONS = frozenset({"__global__", "__device__", "__host__", "__forceinline__", "__noinline__", "__kernel"})
_STORAGE_WORDS = frozenset({"__shared__", "__constant__", "__device__", "__managed__", "__local", "__private"})
_KNOWN = "kernels know the integer types, `half`, `bfloat16`, `float` and `double`, and structures of them."
_NO_TYPE = frozenset({"const", "volatile", "restrict", "__restrict__", "__restrict", "static", "register", "extern"})


def foreign_type(words: Sequence[str], declarator: str) -> Advice | None:
    """Return what is said of a type by its words, of which something is declared; ``None`` for any other type."""
    name = " ".join(words)
    message = f"elements of type `{name}` are not supported"
    if name in _PAIRS:
        reason = "kernels move several elements at once where that helps."
        return Advice(f"`{name}` is a type of CUDA", reason, f"use {_shown(_PAIRS[name], declarator)}.")
    if name in _SMALL:
        reason = "kernels know the integer types, `half`, `bfloat16`, `float` and `double`."
        return Advice(message, reason, f"use {_shown('half', declarator)}.")
    if found := _VECTOR.fullmatch(name):
        unsigned, kind, number = found.groups()
        type_ = ("unsigned " if unsigned else "") + kind.replace("longlong", "long long")
        members = ", ".join("xyzw"[: int(number)])
        tag = {"1": "single", "2": "pair", "3": "triple", "4": "quad"}[number]
        way = (
            f"declare a structure, and write {_shown(tag, declarator)}:\ntypedef struct {{ {type_} {members}; }} {tag};"
        )
        return Advice(f"`{name}` is a type of CUDA", "the file is C. Wide loads are generated where they help.", way)
    if "complex" in words or "_Complex" in words or re.fullmatch(r"cu(Float|Double)?Complex", name):
        type_ = "float" if "float" in words or name in ("cuComplex", "cuFloatComplex") else "double"
        shown = _shown(f"{type_} complex", declarator)
        return Advice(message, _KNOWN, f"write {shown}, with `#include <complex.h>` in front.")
    if words and words[0] in _WIDE:
        return Advice(message, _KNOWN, f"use {_shown(_WIDE[words[0]], declarator)}.")
    if sorted(words) == ["double", "long"]:
        return Advice(message, _KNOWN, f"use {_shown('double', declarator)}.")
    return None


def _shown(type_: str, declarator: str) -> str:
    return f"`{type_} {declarator}`" if declarator else f"`{type_}`"


def foreign_declaration(piece: Sequence[Token], named: Token) -> tuple[str, Span, Advice] | None:
    """Return code, place and what is said of the declaration of a variable, or of its type."""
    if (constant := next((token for token in piece if token.text == "constexpr"), None)) is not None:
        reason = "in C, a constant is a `const` variable, or a macro."
        return "MF0010", constant.span, Advice("`constexpr` is C++, and metafork reads C", reason, "write `const`.")
    for index in placed(piece):
        return "MF0217", piece[index].span, of_storage(piece[index].text)
    at = next((index for index, token in enumerate(piece) if token is named), len(piece))
    texts = [token.text for token in piece]
    stars = next((index for index in range(at) if texts[index] in ("*", "&", "(")), at)
    type_ = [token for token in piece[:stars] if token.text not in _NO_TYPE]
    if not type_:
        return None
    if ":" in texts or "<" in texts or "&" in texts[:at]:
        span = hull(piece[0].span, piece[-1].span)
        return "MF0010", span, _of_cpp(spelled(texts), texts[:at], named.text)
    declarator = spelled(texts[stars:]).rstrip(";")
    advice = foreign_type([token.text for token in type_ if token.kind is TokenKind.NAME], declarator)
    return None if advice is None else ("MF0216", hull(*(token.span for token in type_)), advice)


def _of_cpp(written: str, type_: Sequence[str], name: str) -> Advice:
    message = f"`{written}` is C++, and metafork reads C"
    reason = "the function with the schedule is C, which a program in C++ can call."
    const = "const " if "const" in type_ else ""
    if "<" in type_:
        inside = type_[type_.index("<") + 1 :]
        element = " ".join(word for word in inside[: inside.index(">") if ">" in inside else None])
        element = element.partition(" , ")[0].removeprefix("const ")
        if ":" not in element and re.fullmatch(r"[\w ]+", element):
            pointer = f"{const or ('const ' if 'const' in inside else '')}{element} *{name}"
            call = f"Call it with `{name}.data()` and `{name}.size()`."
            return Advice(message, reason, f"take a pointer, `{pointer}`, and a size, such as `int n`. {call}")
    plain = " ".join(word for word in type_ if word not in ("&", "const"))
    if const and re.fullmatch(r"[\w ]+", plain):
        return Advice(message, reason, f"take the value: `{const}{plain} {name}`.")
    if re.fullmatch(r"[\w ]+", plain):
        return Advice(
            message, reason, f"take a pointer, `{const}{plain} *{name}`, and write `{name}[0]` for its value."
        )
    way = f"take a pointer to the elements and their number, such as `float *{name}` and `int n`."
    return Advice(message, reason, way)


def foreign_function(head: Sequence[Token]) -> tuple[str, Span, Advice] | None:
    """Return code, place and what is said of a function by what stands in front of its name."""
    words = [token for token in head if token.text in _OF_FUNCTIONS]
    if words:
        message = f"`{words[0].text}` is a word of {'OpenCL' if words[0].text == '__kernel' else 'CUDA'}"
        reason = "functions are C of the host. What a schedule calls of them is generated for the device."
        way = f"remove {' and '.join(f'`{token.text}`' for token in words)}."
        return "MF0217", words[0].span, Advice(message, reason, way)
    if head and head[0].text == "template":
        return "MF0010", head[0].span, of_template(head)
    return None


def around_functions(word: str) -> Advice:
    """Return what is said of a ``namespace`` or a ``class`` around a function with a schedule."""
    reason = "the functions of C are those of a file, and of nothing in it."
    return Advice(f"`{word}` is C++, and metafork reads C", reason, f"move the function out of the {word}.")


OF_TABLES = "a schedule may read and write elements of rows, and change none of the pointers to them."
"""Why a table of pointers is refused."""


def table_of_rows(piece: Sequence[Token], name: str, element: str, sizes: Sequence[str]) -> Advice | None:
    """Return what is said of ``float **x`` and ``float *x[n]``, with names for sizes; ``None`` of another pointer."""
    written = spelled(token.text for token in piece)
    if not re.search(rf"\*\*\s*{name}$|(?<!\*)\*\s*{name}\[\w*\]$", written):
        return None
    rows, columns = sizes
    const = "const " if piece[0].text == "const" else ""
    if "***" in written:
        return Advice(
            f"`{written}` is a table of tables, and cannot be copied to the GPU",
            "only tables whose rows are arrays of numbers are packed.",
            f"use one array for all elements, such as `{const}{element} {name}[{rows}][{columns}][k]`.",
        )
    return Advice(
        f"`{written}` is a table of pointers, and cannot be copied to the GPU",
        OF_TABLES,
        f"use one array for all rows, such as `{const}{element} {name}[{rows}][{columns}]` for {rows} rows of "
        f"{columns} elements, allocated by `malloc({rows} * {columns} * sizeof({element}))`.",
    )


def placed(tokens: Sequence[Token]) -> list[int]:
    """Return the words of a declaration that say where CUDA keeps a variable, and are no names of C in it."""
    words = takewhile(lambda index: tokens[index].kind is TokenKind.NAME, range(len(tokens) - 1))
    return [
        index for index in words if tokens[index].text in _STORAGE_WORDS and tokens[index + 1].kind is TokenKind.NAME
    ]


def of_storage(word: str) -> Advice:
    """Return what is said of a word that says where CUDA keeps a variable."""
    reason = "where a variable is declared says which memory it is in."
    if word in ("__shared__", "__local"):
        reason = "an array that is declared between the grid's loop and the threads' loop is in shared memory."
    return Advice(f"`{word}` is a word of CUDA", reason, f"remove `{word}`.")


def of_template(tokens: Sequence[Token]) -> Advice:
    """Return what is said of a template, whose tokens come first."""
    texts = [token.text for token in tokens]
    inside = texts[2 : texts.index(">")] if ">" in texts else texts[2:]
    lines: list[str] = []
    for piece in " ".join(inside).split(","):
        *kind, name = piece.partition("=")[0].split() or [""]
        lines.append(f"typedef float {name};" if kind and kind[-1] in ("typename", "class") else f"#define {name} 16")
    way = "\n".join(["write the function for one type. Put in place of the template:", *lines])
    return Advice(
        "`template` is C++, and metafork reads C", "kernels are made for one type, which the file names.", way
    )
