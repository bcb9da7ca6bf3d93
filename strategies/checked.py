"""A strategy whose programs are checked against the invariants of the IR (in tests, and with ``METAFORK_VERIFY=1``)."""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.ir.invariants import InvariantError, check_program
from metafork.ir.program import Version
from metafork.strategies.strategy import Applied, NotApplied, Strategy


def checked(strategy: Strategy) -> Strategy:
    """Return the strategy with every program that it makes checked: ``apply`` may raise ``InvariantError``."""
    return cast("Strategy", _Checked(strategy))


class _Checked:
    """All but ``apply`` is the strategy's own."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    def __getattr__(self, name: str) -> Any:
        return getattr(self._strategy, name)

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Apply the strategy and check what it made."""
        result = self._strategy.apply(version, analyses)
        if isinstance(result, Applied):
            try:
                check_program(result.version.program)
            except InvariantError as error:
                raise InvariantError(f"{self._strategy.name} made a wrong program: {error}") from error
            if result.otherwise is not None:
                return replace(result, otherwise=checked(result.otherwise))
        return result
