"""What a verification found: one row a leaf, every failure with its point, and the same as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from comprehensive.case_discussion.properties import Check
from comprehensive.tree.schedule_tree import AS_WRITTEN, leaf_name
from comprehensive.verification.translation.translation import Validation
from metafork.algebra.prover import Verdict

FORMAT, VERSION = "metafork-verification", 1
CHECKS = ("guards", "resources", "code", "races", "dataflow")
"""The columns of the table: ``code`` is the result bit for bit and every bound, ``races`` also uninitialised memory,
``dataflow`` whether the leaf's program was proved to compute what the source does (else it is tested, not proved)."""

DEVICE = "device"
"""One more column, of a verification that ran on a GPU: the result of the leaf there."""

NO_LEAF = "it has no leaf: nothing satisfies all that it assumes"


class Failure(Struct, frozen=True):
    """Something that does not hold: which check, of which schedule and leaf (0: the whole tree), where, and what.

    ``strategies`` are those of the leaf, ``title`` says what it does.
    """

    check: str
    schedule: str
    leaf: int
    point: str
    message: str
    strategies: tuple[str, ...] = ()
    title: str = AS_WRITTEN

    def text(self) -> str:
        """Return one line."""
        place = f"{self.schedule} {leaf_name(self.leaf, self.title)}" if self.leaf else self.schedule
        where = f" at {self.point}" if self.point else ""
        return f"{place}: {self.check}{where}: {self.message}"


class LeafResult(Struct):
    """One leaf: how many points it ran at, on how many of them which check failed, and registers by target.

    ``title`` says what it does.  ``registers`` maps a target to (estimate, what ptxas allotted).  ``not_run`` says
    why no run was tried, ``left_out`` why one showed nothing.  ``instances`` counts the launches of each instance.
    ``device_points`` are those at which it ran on a GPU, ``not_on_device`` why it did not at another one.
    """

    schedule: str
    leaf: int
    kernel: str
    strategies: tuple[str, ...]
    title: str = AS_WRITTEN
    points: int = 0
    raced_points: int = 0
    device_points: int = 0
    marks: set[str] = field(default_factory=set)
    registers: dict[str, tuple[int | None, int]] = field(default_factory=dict)
    dataflow: Validation | None = None
    not_run: str = ""
    left_out: str = ""
    not_on_device: str = ""
    instances: dict[int, int] = field(default_factory=dict)

    @property
    def verified(self) -> bool:
        """Whether it ran at all, and each of its instances: what never ran is not verified."""
        return self.points > 0 and all(self.instances.values())

    @property
    def reason(self) -> str:
        """Why it is not verified, where that is known."""
        idle = ", ".join(str(number) for number, launches in self.instances.items() if not launches)
        return self.not_run or self.left_out or (f"instance {idle} never ran" if self.points and idle else "")


class Verification(Struct):
    """The whole result; ``complete`` is false where the time limit cut it short."""

    source: str
    leaves: list[LeafResult] = field(default_factory=list)
    guards: dict[str, list[Check]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    complete: bool = True
    on_device: bool = False

    @property
    def checks(self) -> tuple[str, ...]:
        """The columns of the table."""
        return (*CHECKS, DEVICE) if self.on_device else CHECKS

    @property
    def passed(self) -> bool:
        """Whether nothing failed; what is unknown or was not run does not count as failed, and is shown."""
        return not self.failures

    @property
    def not_verified(self) -> tuple[LeafResult, ...]:
        """The leaves that never ran."""
        return tuple(row for row in self.leaves if not row.verified)

    @property
    def leafless(self) -> tuple[str, ...]:
        """The schedules that have no leaf, of which nothing could run."""
        with_leaves = {row.schedule for row in self.leaves}
        return tuple(name for name in self.guards if name not in with_leaves)

    def refute(self, schedule: str, checks: Sequence[Check]) -> None:
        """Take up the refuted guards as failures."""
        self.failures += [
            Failure("guards", schedule, 0, "", f"{check.name}: refuted, {check.ground}")
            for check in checks
            if check.verdict is Verdict.NO
        ]

    def leaf_named(self, schedule: str, leaf: int) -> str:
        """Return what a leaf of a schedule is called: ``leaf 2 (a in shared memory)``."""
        row = next((row for row in self.leaves if (row.schedule, row.leaf) == (schedule, leaf)), None)
        return f"leaf {leaf}" if row is None else leaf_name(leaf, row.title)

    def state(self, check: str, row: LeafResult) -> str:
        """Return a cell: ``ok``, ``FAIL``, ``unknown``, ``proved``, ``tested`` or ``-`` (not checked)."""
        if any(f.check == check and f.schedule == row.schedule and f.leaf in (0, row.leaf) for f in self.failures):
            return "FAIL"
        if check == "guards":
            found = self.guards.get(row.schedule)
            if not found:
                return "-"
            own = [c for c in found if not c.leaves or row.leaf in c.leaves]
            return "unknown" if any(c.verdict is Verdict.UNKNOWN for c in own) else "ok"
        if check == "dataflow":
            return "-" if row.dataflow is None else "proved" if row.dataflow.verdict is Verdict.YES else "tested"
        run = {"races": row.raced_points, DEVICE: row.device_points}.get(check, row.points)
        return "ok" if run else "-"

    def table(self) -> str:
        """Return the table, the failures, and what was left open."""
        header = ("leaf", *self.checks, "points", "special points", "what it does")
        rows = [
            (
                f"{row.schedule} {row.leaf}",
                *(self.state(check, row) for check in self.checks),
                str(row.points) if row.verified else "not verified",
                str(len(row.marks)),
                row.title,
            )
            for row in self.leaves
        ]
        widths = [max(len(line[column]) for line in (header, *rows)) for column in range(len(header))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
                 for line in (header, *rows)]  # fmt: skip
        for schedule, checks in self.guards.items():
            outcomes = [check.outcome for check in checks]
            counts = (f"{outcomes.count(word)} {word}" for word in ("proved", "tested", "refuted", "unknown"))
            lines.append(f"guards of {schedule}: {', '.join(counts)}")
            unknown = (f"{c.name}: {c.ground}" for c in checks if c.verdict is Verdict.UNKNOWN)
            lines += [f"  unknown: {text}" for text in unknown]
        for row in self.leaves:
            if row.instances:
                runs = ", ".join(f"{number} ({launches})" for number, launches in row.instances.items())
                place = self.leaf_named(row.schedule, row.leaf)
                lines.append(f"launches of instances of {row.schedule}, {place}: {runs}")
        lines += self._dataflow_lines()
        lines += self._register_lines()
        lines += self._device_lines()
        lines += [f"note: {note}" for note in self.notes]
        lines += [f"FAIL {failure.text()}" for failure in self.failures]
        for row in self.not_verified:
            place = f"{row.schedule} {leaf_name(row.leaf, row.title)}"
            lines.append(f"not verified: {place}: {row.reason or 'it never ran'}")
        lines += [f"not verified: {name}: {NO_LEAF}" for name in self.leafless]
        if not self.complete:
            lines.append("incomplete: the time limit was reached")
        return "\n".join(lines) + "\n"

    def _dataflow_lines(self) -> list[str]:
        """Return what the proofs of dataflow hold for, or why there is none; equal ones once."""
        details: dict[tuple[str, str], list[int]] = {}
        for row in self.leaves:
            if row.dataflow is not None:
                details.setdefault((row.schedule, row.dataflow.detail), []).append(row.leaf)
        return [
            f"dataflow of {schedule}, {self._leaves(schedule, leaves)}: {detail}"
            for (schedule, detail), leaves in details.items()
        ]

    def _leaves(self, schedule: str, leaves: Sequence[int]) -> str:
        return f"leaves {', '.join(map(str, leaves))}" if len(leaves) > 1 else self.leaf_named(schedule, leaves[0])

    def _register_lines(self) -> list[str]:
        lines = []
        for row in self.leaves:
            for target, (estimate, real) in sorted(row.registers.items()):
                difference = "no estimate" if estimate is None else f"estimated {estimate} ({estimate - real:+d})"
                lines.append(f"registers of {row.kernel} ({row.title}) on {target}: {real}, {difference}")
        return lines

    def _device_lines(self) -> list[str]:
        """Return at how many points each leaf ran on the device."""
        if not self.on_device:
            return []
        lines = []
        for row in self.leaves:
            others = f" (not at others, where {row.not_on_device})" if row.not_on_device else ""
            points = f"{row.device_points} of {row.points} points{others}"
            lines.append(f"on the device, {row.schedule} {leaf_name(row.leaf, row.title)}: {points}")
        return lines

    def to_json(self) -> str:
        """Return the same as JSON."""
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "source": self.source,
            "passed": self.passed,
            "complete": self.complete,
            "not_verified": [
                {
                    "schedule": row.schedule,
                    "leaf": row.leaf,
                    "strategies": list(row.strategies),
                    "title": row.title,
                    "reason": row.reason,
                }
                for row in self.not_verified
            ]
            + [
                {"schedule": name, "leaf": 0, "strategies": [], "title": "", "reason": NO_LEAF}
                for name in self.leafless
            ],
            "leaves": [
                {
                    "schedule": row.schedule,
                    "leaf": row.leaf,
                    "kernel": row.kernel,
                    "strategies": list(row.strategies),
                    "title": row.title,
                    "verified": row.verified,
                    "points": row.points,
                    "special_points": sorted(row.marks),
                    **{check: self.state(check, row) for check in self.checks},
                    **({"device_points": row.device_points} if self.on_device else {}),
                    "registers": {t: {"estimate": e, "ptxas": r} for t, (e, r) in sorted(row.registers.items())},
                    **({"dataflow_detail": row.dataflow.detail} if row.dataflow is not None else {}),
                    **({"not_run": row.not_run} if row.not_run else {}),
                    **({"instances": {str(n): runs for n, runs in row.instances.items()}} if row.instances else {}),
                }
                for row in self.leaves
            ],
            "guards": {name: [_check(check) for check in checks] for name, checks in self.guards.items()},
            "failures": [
                {
                    "check": f.check,
                    "schedule": f.schedule,
                    "leaf": f.leaf,
                    **({"strategies": list(f.strategies), "title": f.title} if f.leaf else {}),
                    "point": f.point,
                    "message": f.message,
                }
                for f in self.failures
            ],
            "notes": self.notes,
        }
        return json.dumps(document, indent=2) + "\n"


def _check(check: Check) -> Mapping[str, object]:
    verdict = "tested" if check.outcome == "tested" else check.verdict.value
    return {"name": check.name, "verdict": verdict, "ground": check.ground}
