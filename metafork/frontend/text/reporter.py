"""Collecting diagnostics: faults are noted and work goes on, so that one run reports them all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from metafork.frontend.text.other_languages.advice import Advice
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
        self._causes: set[str] = set()
        self._certain: set[Span] = set()

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
        return self.text(span.start, span.end)

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

    def advise(self, code: str, span: Span, advice: Advice, related: tuple[tuple[Span, str], ...] = ()) -> RefusedError:
        """Note what is said of something that another language has, once for a cause; return the exception."""
        if advice.cause not in self._causes:
            self.error(code, span, advice.message, reason=advice.reason, way_out=advice.help, related=related)
        if advice.cause:
            self._causes.add(advice.cause)
        if advice.certain:
            self._certain.add(span)
        return RefusedError(advice.message)

    def text(self, start: int, end: int) -> str:
        """Return what the source says between two places."""
        return self._source.text[start:end]

    def suspect(self, code: str, span: Span, message: str) -> None:
        """Note what is an error if names turn out to be unknown, and is then told in place of those errors."""
        self._suspects.append((code, span, message))

    def finish(self) -> None:
        """Raise ``DiagnosticsError`` where an error was noted."""
        doubtful = [one for one in self._noted if one.span not in self._certain]
        unknown = min((one.span for one in doubtful if one.code in _UNKNOWN_NAMES), default=None)
        if self._suspects and unknown is not None:
            following = [one for one in doubtful if one.code in _FOLLOWING]
            self._noted = [one for one in self._noted if one not in following]
            for code, span, message in self._suspects:
                self.error(code, span, message, related=((unknown, "it may declare what is used here"),))
        if self.failed:
            raise DiagnosticsError(self._noted)


class SilentReporter(Reporter):
    """Takes note of nothing: for code of the host that may well be beyond the language."""

    def __init__(self) -> None:
        super().__init__(Source("", ""))

    def error(self, code: str, span: Span, message: str, **_: object) -> None:
        """Forget a fault."""
