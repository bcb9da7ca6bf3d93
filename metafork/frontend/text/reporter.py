"""Collecting diagnostics: faults are noted and work goes on, so that one run reports them all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from metafork.ir.messages.diagnostics import Diagnostic, DiagnosticsError, Severity
from metafork.ir.messages.source import Source, Span

_UNKNOWN_NAMES = frozenset({"MF0206", "MF0301", "MF0312", "MF0315"})
"""The codes of names that nothing declares, among others."""
_FOLLOWING = _UNKNOWN_NAMES | {"MF0010", "MF0205", "MF0216", "MF0220"}
"""The codes of what may follow from that."""


class RefusedError(Exception):
    """A piece of the input was refused; the diagnostic is already noted."""


class Reporter:
    """Notes diagnostics about one source."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._noted: list[Diagnostic] = []
        self._known: set[tuple[str, Span]] = set()
        self._suspects: list[tuple[str, Span, str]] = []
        self._context: list[tuple[Span, str]] = []

    @contextmanager
    def context(self, span: Span, message: str) -> Iterator[None]:
        """Add a place to all that is noted for the time of a ``with`` statement."""
        self._context.append((span, message))
        try:
            yield
        finally:
            self._context.pop()

    @property
    def failed(self) -> bool:
        """Whether an error was noted."""
        return any(one.severity is Severity.ERROR for one in self._noted)

    def written(self, span: Span) -> str:
        """Return what the source has at a place."""
        return self._source.text[span.start : span.end]

    def error(
        self,
        code: str,
        span: Span,
        message: str,
        *,
        reason: str | None = None,
        way_out: str | None = None,
        related: tuple[tuple[Span, str], ...] = (),
    ) -> None:
        """Note an error; reason and way out default to the catalogue's."""
        from metafork.ir.messages.catalogue import CATALOGUE  # most files have no fault

        entry = CATALOGUE[code]
        if (code, span) in self._known:
            return
        self._known.add((code, span))
        self._noted.append(
            Diagnostic(
                code,
                Severity.ERROR,
                message,
                span,
                self._source.name,
                entry.reason if reason is None else reason,
                entry.way_out if way_out is None else way_out,
                (*related, *reversed(self._context)),
            )
        )

    def refuse(
        self,
        code: str,
        span: Span,
        message: str,
        *,
        reason: str | None = None,
        way_out: str | None = None,
        related: tuple[tuple[Span, str], ...] = (),
    ) -> RefusedError:
        """Note an error and return the exception that gives up the piece at hand: ``raise reporter.refuse(...)``."""
        self.error(code, span, message, reason=reason, way_out=way_out, related=related)
        return RefusedError(message)

    def suspect(self, code: str, span: Span, message: str) -> None:
        """Note what is an error if names turn out to be unknown, and is then told in place of those errors."""
        self._suspects.append((code, span, message))

    def finish(self) -> None:
        """Raise ``DiagnosticsError`` where an error was noted."""
        if self._suspects and any(one.code in _UNKNOWN_NAMES for one in self._noted):
            self._noted = [one for one in self._noted if one.code not in _FOLLOWING]
            for one in self._suspects:
                self.error(*one)
        if self.failed:
            raise DiagnosticsError(self._noted)


class SilentReporter(Reporter):
    """Takes note of nothing: for code of the host that may well be beyond the language."""

    def __init__(self) -> None:
        super().__init__(Source("", ""))

    def error(self, code: str, span: Span, message: str, **_: object) -> None:
        """Forget a fault."""
