"""The kinds of words in texts of C, CUDA, OpenCL and MetaFork, for the page: Pygments' lexer for CUDA, and a few words.

``_12k4_c9`` says that a keyword of 4 characters stands behind 12 others, and a comment of 9 behind one more: letters of
``KINDS`` with lengths, if they are not 1, and ``_`` for what has no colour.  Characters are UTF-16, as browsers
count them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from pygments.lexers.c_like import CudaLexer
from pygments.token import Comment, Keyword, Name, Number, String, _TokenType

KINDS = {"c": "comment", "s": "text", "d": "directive", "n": "number", "t": "type", "k": "keyword", "b": "builtin"}
"""Classes of the page by the letters of spans."""

_LETTERS = (
    (Comment.Preproc, "d"),
    (Comment, "c"),
    (String, "s"),
    (Number, "n"),
    (Keyword.Type, "t"),
    (Keyword, "k"),
    (Name.Builtin, "b"),
)
_LEXER = CudaLexer(ensurenl=False, stripnl=False)


def spans(text: str) -> str:
    """Return the kinds of the words of a text."""
    result = []
    for letter, words in groupby(_words(text), lambda word: word[0]):
        length = sum(length for _, length in words)
        result.append(letter if length == 1 else f"{letter}{length}")
    return "".join(result)


def _words(text: str) -> Iterator[tuple[str, int]]:
    """Yield the letters of the words, and their lengths."""
    letters: dict[_TokenType, str] = {}
    for _, token, word in _LEXER.get_tokens_unprocessed(text):
        if token not in letters:
            letters[token] = next((letter for kind, letter in _LETTERS if token in kind), "_")
        letter = letters[token]
        if token in Name:
            if word.startswith(("meta_", "__")) or word == "cache":
                letter = "k"
            elif word.startswith("METAFORK_"):
                letter = "b"
        yield letter, len(word) if word.isascii() else len(word.encode("utf-16-le")) // 2
