"""What ``shuffle`` did: text for people, JSON for programs (``"format": "metafork-shuffle", "version": 1``)."""

from __future__ import annotations

from typing import Any

from metafork.ptx.shuffles.shuffle import KernelReport, Shuffle, ShuffleResult


def report_document(result: ShuffleResult, source: str) -> dict[str, Any]:
    """Return the JSON document of a result; places are [line, column] in the input."""
    return {
        "format": "metafork-shuffle",
        "version": 1,
        "source": source,
        "valid": result.valid,
        "kernels": [_kernel_document(kernel) for kernel in result.kernels],
    }


def _kernel_document(kernel: KernelReport) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "loads": kernel.loads,
        "shuffles": [_shuffle_document(shuffle) for shuffle in kernel.shuffles],
        "reuses": [_shuffle_document(shuffle) for shuffle in kernel.reuses],
        "mean_delta": kernel.mean_delta,
        "left_alone": [{"at": [left.span.line, left.span.column], "reason": left.reason} for left in kernel.left_alone],
        "unchanged": kernel.unchanged,
        "assumptions": list(kernel.assumptions),
        "solver_questions": kernel.questions,
    }


def _shuffle_document(shuffle: Shuffle) -> dict[str, Any]:
    return {
        "at": [shuffle.span.line, shuffle.span.column],
        "source": [shuffle.source.line, shuffle.source.column],
        "delta": shuffle.delta,
        "bytes": shuffle.size,
        "hoisted": shuffle.hoisted,
        "passes_checked": shuffle.checked,
        "borders_checked": shuffle.bordered,
    }


def report_text(result: ShuffleResult) -> str:
    """Return a few lines for each kernel, ending in a newline."""
    lines: list[str] = []
    for kernel in result.kernels:
        if kernel.unchanged is not None:
            lines.append(f"{kernel.name}: unchanged: {kernel.unchanged}")
        else:
            mean = "" if kernel.mean_delta is None else f", mean |delta| {kernel.mean_delta:.2f}"
            reuses = f", {len(kernel.reuses)} register reuses" if kernel.reuses else ""
            lines.append(f"{kernel.name}: {len(kernel.shuffles)} shuffles / {kernel.loads} loads{mean}{reuses}")
            checked = sum(shuffle.checked for shuffle in kernel.shuffles)
            if checked:
                lines.append(f"  {checked} of them compare the lanes' passes of the loops around")
            bordered = sum(shuffle.bordered for shuffle in kernel.shuffles)
            if bordered:
                lines.append(f"  {bordered} of them leave the lanes at borders to their own loads")
            if kernel.assumptions:
                lines.append(f"  assuming {', '.join(kernel.assumptions)}")
        lines += [f"  {left.span}: left alone: {left.reason}" for left in kernel.left_alone]
    if not result.valid:
        lines.append("the results of this variant are invalid: it is for measuring only")
    if not lines:
        lines.append("there is no kernel")
    return "\n".join(lines) + "\n"
