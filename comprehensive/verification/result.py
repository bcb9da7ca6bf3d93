"""What a verification found: one row a variant, every failure with its point, and the same as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from metafork.algebra.prover import Verdict
from metafork.comprehensive.case_discussion.properties import Check
from metafork.comprehensive.tree.schedule_tree import AS_WRITTEN, leaf_name
from metafork.comprehensive.verification.instrumented import Branch, never_taken
from metafork.comprehensive.verification.translation.translation import Validation

FORMAT, VERSION = "metafork-verification", 2
CHECKS = ("guards", "resources", "code", "races", "dataflow")
"""The columns of the table: ``code`` is the result bit for bit and every bound, ``races`` also uninitialised memory,
``dataflow`` whether the leaf's program was proved to compute what the source does (else it is tested, not proved)."""

DEVICE = "device"
"""One more column, of a verification that ran on a GPU: the result of the leaf there."""

NO_LEAF = "it has no leaf: nothing satisfies all that it assumes"


class Failure(Struct, frozen=True):
    """Something that does not hold: which check, of which schedule, leaf and variant, where, and what.

    ``leaf`` 0 is the whole tree.  ``name`` is what the variant is called, ``strategies`` are those that led to it.
    """

    check: str
    schedule: str
    leaf: int
    point: str
    message: str
    variant: int = 0
    name: str = ""
    strategies: tuple[str, ...] = ()

    def text(self) -> str:
        """Return one line."""
        place = f"{self.schedule} {self.name}" if self.leaf else self.schedule
        where = f" at {self.point}" if self.point else ""
        return f"{place}: {self.check}{where}: {self.message}"


class VariantResult(Struct):
    """One variant: how many points it ran at, on how many of them which check failed, and registers by target.

    ``leaf_title`` says what its leaf does, ``title`` what it does beside that (empty: nothing, it is the leaf's own).
    ``registers`` maps a target to (estimate, what ptxas allotted).  ``not_run`` says why no run was tried, ``left_out``
    why one showed nothing.  ``device_points`` are those at which it ran on a GPU, ``not_on_device`` why it did not at
    another one; ``for_values`` says that it is an instance.  ``branches`` are those of its kernel, of which ``taken``
    are, by number, at some point.
    """

    schedule: str
    leaf: int
    variant: int
    kernel: str
    strategies: tuple[str, ...]
    leaf_title: str = AS_WRITTEN
    title: str = ""
    for_values: bool = False
    points: int = 0
    raced_points: int = 0
    device_points: int = 0
    marks: set[str] = field(default_factory=set)
    branches: tuple[Branch, ...] = ()
    taken: set[int] = field(default_factory=set)
    registers: dict[str, tuple[int | None, int]] = field(default_factory=dict)
    dataflow: Validation | None = None
    not_run: str = ""
    left_out: str = ""
    not_on_device: str = ""

    @property
    def name(self) -> str:
        """What it is called in a sentence: ``leaf 1, variant 2 (for B = 16)``, or as its leaf."""
        return f"leaf {self.leaf}, variant {self.variant} ({self.title})" if self.title else self.leaf_name

    @property
    def leaf_name(self) -> str:
        """What its leaf is called."""
        return leaf_name(self.leaf, self.leaf_title)

    @property
    def verified(self) -> bool:
        """Whether it ran at all: what never ran is not verified."""
        return self.points > 0

    @property
    def never_taken(self) -> tuple[Branch, ...]:
        """The branches that no point took, without those inside of one."""
        return tuple(never_taken(self.branches, self.taken)) if self.raced_points else ()

    @property
    def reason(self) -> str:
        """Why it is not verified, where that is known."""
        return self.not_run or self.left_out

    def has(self, failure: Failure) -> bool:
        """Say whether a failure is one of this variant."""
        return (failure.schedule, failure.leaf, failure.variant) == (self.schedule, self.leaf, self.variant)

    def failure(self, check: str, point: str, message: str) -> Failure:
        """Return a failure of this variant."""
        return Failure(check, self.schedule, self.leaf, point, message, self.variant, self.name, self.strategies)


class Verification(Struct):
    """The whole result; ``complete`` is false where the time limit cut it short."""

    source: str
    rows: list[VariantResult] = field(default_factory=list)
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
    def not_verified(self) -> tuple[VariantResult, ...]:
        """The variants that never ran."""
        return tuple(row for row in self.rows if not row.verified)

    @property
    def leafless(self) -> tuple[str, ...]:
        """The schedules that have no leaf, of which nothing could run."""
        with_leaves = {row.schedule for row in self.rows}
        return tuple(name for name in self.guards if name not in with_leaves)

    def refute(self, schedule: str, checks: Sequence[Check]) -> None:
        """Take up the refuted guards as failures."""
        self.failures += [
            Failure("guards", schedule, 0, "", f"{check.name}: refuted, {check.ground}")
            for check in checks
            if check.verdict is Verdict.NO
        ]

    def take(self, branches: Collection[tuple[str, int]]) -> None:
        """Note that a run took branches, by kernel and number."""
        for row in self.rows:
            row.taken |= {number for kernel, number in branches if kernel == row.kernel}

    def leaf_named(self, schedule: str, leaf: int) -> str:
        """Return what a leaf of a schedule is called: ``leaf 2 (a in shared memory)``."""
        row = next((row for row in self.rows if (row.schedule, row.leaf) == (schedule, leaf)), None)
        return f"leaf {leaf}" if row is None else row.leaf_name

    def state(self, check: str, row: VariantResult) -> str:
        """Return a cell: ``ok``, ``FAIL``, ``unknown``, ``proved``, ``tested`` or ``-`` (not checked)."""
        own = [f for f in self.failures if row.has(f) or (f.schedule == row.schedule and not f.leaf)]
        if any(failure.check == check for failure in own):
            return "FAIL"
        if check == "guards":
            found = self.guards.get(row.schedule)
            if not found:
                return "-"
            checks = [c for c in found if not c.leaves or row.leaf in c.leaves]
            return "unknown" if any(c.verdict is Verdict.UNKNOWN for c in checks) else "ok"
        if check == "dataflow":
            return "-" if row.dataflow is None else "proved" if row.dataflow.verdict is Verdict.YES else "tested"
        run = {"races": row.raced_points, DEVICE: row.device_points}.get(check, row.points)
        return "ok" if run else "-"

    def table(self) -> str:
        """Return the table, the failures, and what was left open."""
        header = ("leaf", "variant", *self.checks, "points", "special points", "what it does")
        rows = [
            (
                f"{row.schedule} {row.leaf}",
                str(row.variant),
                *(self.state(check, row) for check in self.checks),
                str(row.points) if row.verified else "not verified",
                str(len(row.marks)),
                row.title or row.leaf_title,
            )
            for row in self.rows
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
        lines += self._dataflow_lines()
        lines += self._branch_lines()
        lines += self._register_lines()
        lines += self._device_lines()
        lines += [f"note: {note}" for note in self.notes]
        lines += [f"FAIL {failure.text()}" for failure in self.failures]
        for row in self.not_verified:
            lines.append(f"not verified: {row.schedule} {row.name}: {row.reason or 'it never ran'}")
        lines += [f"not verified: {name}: {NO_LEAF}" for name in self.leafless]
        if not self.complete:
            lines.append("incomplete: the time limit was reached")
        return "\n".join(lines) + "\n"

    def _dataflow_lines(self) -> list[str]:
        """Return what the proofs of dataflow hold for, or why there is none; equal ones once."""
        details: dict[tuple[str, str], list[VariantResult]] = {}
        for row in self.rows:
            if row.dataflow is not None:
                details.setdefault((row.schedule, row.dataflow.detail), []).append(row)
        return [
            f"dataflow of {schedule}, {self._named(rows)}: {detail}" for (schedule, detail), rows in details.items()
        ]

    def _named(self, rows: Sequence[VariantResult]) -> str:
        if len(rows) == 1:
            return rows[0].name
        several = {row.leaf for row in self.rows if row.variant > 1}
        names = (f"{row.leaf} variant {row.variant}" if row.leaf in several else str(row.leaf) for row in rows)
        return f"leaves {', '.join(names)}"

    def _branch_lines(self) -> list[str]:
        """Return which code of a kernel ran at no point."""
        lines = []
        for row in self.rows:
            if row.never_taken:
                first, *others = row.never_taken
                more = f" (and {len(others)} more: --json)" if others else ""
                lines.append(f"no point ran what {row.schedule} {row.name} does where {first}{more}")
        return lines

    def _register_lines(self) -> list[str]:
        lines = []
        for row in self.rows:
            for target, (estimate, real) in sorted(row.registers.items()):
                difference = "no estimate" if estimate is None else f"estimated {estimate} ({estimate - real:+d})"
                lines.append(
                    f"registers of {row.kernel} ({row.title or row.leaf_title}) on {target}: {real}, {difference}"
                )
        return lines

    def _device_lines(self) -> list[str]:
        """Return at how many points each variant ran on the device."""
        if not self.on_device:
            return []
        lines = []
        for row in self.rows:
            others = f" (not at others, where {row.not_on_device})" if row.not_on_device else ""
            points = f"{row.device_points} of {row.points} points{others}"
            lines.append(f"on the device, {row.schedule} {row.name}: {points}")
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
                    "variant": row.variant,
                    "strategies": list(row.strategies),
                    "title": row.title or row.leaf_title,
                    "reason": row.reason,
                }
                for row in self.not_verified
            ]
            + [
                {"schedule": name, "leaf": 0, "variant": 0, "strategies": [], "title": "", "reason": NO_LEAF}
                for name in self.leafless
            ],
            "variants": [
                {
                    "schedule": row.schedule,
                    "leaf": row.leaf,
                    "variant": row.variant,
                    "kernel": row.kernel,
                    "strategies": list(row.strategies),
                    "title": row.title or row.leaf_title,
                    "verified": row.verified,
                    "points": row.points,
                    "special_points": sorted(row.marks),
                    **{check: self.state(check, row) for check in self.checks},
                    **({"device_points": row.device_points} if self.on_device else {}),
                    "registers": {t: {"estimate": e, "ptxas": r} for t, (e, r) in sorted(row.registers.items())},
                    **({"dataflow_detail": row.dataflow.detail} if row.dataflow is not None else {}),
                    **({"not_run": row.not_run} if row.not_run else {}),
                    **({"branches_never_taken": list(map(str, row.never_taken))} if row.never_taken else {}),
                }
                for row in self.rows
            ],
            "guards": {name: [_check(check) for check in checks] for name, checks in self.guards.items()},
            "failures": [
                {
                    "check": f.check,
                    "schedule": f.schedule,
                    "leaf": f.leaf,
                    **({"variant": f.variant, "strategies": list(f.strategies)} if f.leaf else {}),
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
