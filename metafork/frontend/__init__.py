"""The front end: text of a ``.mf`` file to a ``TranslationUnit`` with a ``Program`` for every schedule.

Read in this order: ``tokens``, ``macros`` and ``preprocessor`` (text to tokens), ``structure`` and ``c_grammar``
(tokens to the ``syntax`` tree), ``host`` (what surrounds a schedule), ``array_moves`` (arrays that change places),
``nest``, ``expressions`` and ``inlining`` (the schedule itself), ``program`` (both together), ``unit`` (the file).
Faults of the input are diagnostics, all of a file in one run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from metafork.frontend.text.reporter import Reporter
from metafork.frontend.text.tokens import LineMap
from metafork.frontend.unit import UnitParser
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from metafork.ir.translation_unit import TranslationUnit


def parse(source: Source, *, reassociate: bool = False, following: bool = False) -> TranslationUnit:
    """Return the parsed file; ``reassociate`` allows reductions of floating-point numbers, in an order of their own.

    Pointers of which no pragma says how many elements they lead to are arrays without end if that is ``following`` from
    their accesses (``metafork.analysis.extents.solved``), else no arrays.

    What depends on macros that the text does not define is not known at first.  Where that is why the file is refused,
    they are taken as not defined, which ``TranslationUnit.assumptions`` says.

    Raises ``metafork.DiagnosticsError`` with all diagnostics of the file, in the order of its text.
    """
    parser = UnitParser(source, reassociate, following)
    try:
        return parser.parse()
    except DiagnosticsError as refused:
        if not parser.undecided:
            raise
        try:
            return UnitParser(source, reassociate, following, assuming=True).parse()
        except DiagnosticsError as error:
            # Of what is wrong either way, the first word tells more: a name may be declared under a condition.
            said = {one.span: one for one in refused.diagnostics}
            gone = any(one.code == "MF0002" for one in error.diagnostics)
            raise (
                refused if gone else DiagnosticsError(said.get(one.span, one) for one in error.diagnostics)
            ) from None


def read_source(path: Path, definitions: Sequence[str] = (), folders: Sequence[str] = ()) -> Source:
    """Read a file as it is: line ends are kept, a byte order mark is left out.

    ``definitions`` and ``folders`` are those of ``-D`` and ``-I``.
    Raises ``OSError``, and ``DiagnosticsError`` (MF0001) where the bytes are no UTF-8.
    """
    data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    try:
        return Source(str(path), data.decode("utf-8"), tuple(definitions), tuple(folders))
    except UnicodeDecodeError as error:
        text = data.decode("utf-8", errors="replace")
        offset = len(data[: error.start].decode("utf-8"))
        reporter = Reporter(Source(str(path), text))
        span = LineMap(text).span(offset, offset + 1)
        reporter.error("MF0001", span, f"the byte 0x{data[error.start]:02x} stands here, which is no UTF-8")
        reporter.finish()
        raise AssertionError from error


__all__ = ["DiagnosticsError", "parse", "read_source"]
