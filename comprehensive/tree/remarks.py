"""What strategies remarked on the arrays and loops of a schedule, for people: with carets, as a list, in one line.

Three questions are answered: what goes through shared memory, what a thread keeps in registers, what can join the grid;
and a fourth where the file has tables: which of them are in constant memory.  Loads of the preferred kernel that do not
coalesce come first.
"""

from __future__ import annotations

from collections.abc import Sequence

from metafork.ir.messages.diagnostics import Diagnostic, Severity, render_text
from metafork.ir.messages.source import NOWHERE, Source, Span
from metafork.strategies.strategy import Remark, Topic

VERBS: dict[Topic, tuple[str, str]] = {
    "coalescing": ("is read by coalesced loads", "is read by loads that do not coalesce"),
    "shared memory": ("goes through shared memory", "does not go through shared memory"),
    "registers": ("is kept in registers", "is not kept in registers"),
    "constant memory": ("is in constant memory", "is not in constant memory"),
    "grid": ("can join the grid", "does not join the grid"),
}
"""What is said of a subject that was taken up, and of one that was not."""

_QUESTIONS: dict[Topic, str] = {
    "shared memory": "in shared memory",
    "registers": "in registers",
    "constant memory": "in constant memory",
    "grid": "can join the grid",
}


def in_topics(remarks: Sequence[Remark]) -> tuple[Remark, ...]:
    """Return the remarks by topic, in the order of ``VERBS``, what was taken up first."""
    order = list(VERBS)
    return tuple(sorted(dict.fromkeys(remarks), key=lambda one: (order.index(one.topic), not one.taken)))


def verdict(remark: Remark) -> str:
    """Return the remark without its reason."""
    return f"{remark.subject} {VERBS[remark.topic][not remark.taken]}"


def place(remark: Remark) -> Span:
    """Return where a remark is shown: at the access that decided on an array, at the loop for a loop."""
    places = (remark.span, remark.fault) if remark.topic == "grid" else (remark.fault, remark.span)
    return next((span for span in places if span != NOWHERE), NOWHERE)


def with_carets(remarks: Sequence[Remark], source: Source, around: Span, color: bool = False) -> str:
    """Return the remarks as diagnostics are printed; what stands nowhere in the text is shown at ``around``."""
    texts = {source.name: source.text}
    return "\n".join(render_text([_note(one, source, around)], texts, color) for one in in_topics(remarks))


def _note(remark: Remark, source: Source, around: Span) -> Diagnostic:
    span = place(remark)
    elsewhere = remark.fault not in (NOWHERE, span)
    return Diagnostic(
        "",
        Severity.NOTE,
        verdict(remark),
        around if span == NOWHERE else span,
        source.name,
        remark.reason,
        remark.hint,
        ((remark.fault, "because of this"),) if elsewhere else (),
    )


def as_list(remarks: Sequence[Remark]) -> list[str]:
    """Return the remarks as lines of a Markdown list."""
    lines: list[str] = []
    for one in in_topics(remarks):
        numbers = dict.fromkeys(str(span.line) for span in (place(one), one.fault) if span != NOWHERE)
        where = f" (line{'s' if len(numbers) > 1 else ''} {' and '.join(numbers)})" if numbers else ""
        lines.append(f"- {verdict(one)}{where}: {one.reason}" + (f"; hint: {one.hint}" if one.hint else ""))
    return lines


def in_one_line(remarks: Sequence[Remark]) -> str:
    """Return what was taken up of each topic, and the first hint where something was not."""
    remarks = in_topics(remarks)
    strided = dict.fromkeys(one.subject for one in remarks if one.topic == "coalescing")
    parts = [f"loads do not coalesce: {', '.join(strided)}"] if strided else []
    for topic, question in _QUESTIONS.items():
        taken = dict.fromkeys(one.subject for one in remarks if one.topic == topic and one.taken)
        if topic != "constant memory" or any(one.topic == topic for one in remarks):
            parts.append(f"{question}: {', '.join(taken) or 'nothing'}")
    hint = next((one for one in remarks if one.hint and not one.taken), None)
    if hint is not None:
        parts.append(f"hint for {hint.subject}: {hint.hint}")
    return "; ".join(parts)
