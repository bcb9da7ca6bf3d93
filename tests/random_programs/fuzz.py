"""Verify random programs without end (``make fuzz``); what fails is written to a directory with its report.

python -m tests.random_programs.fuzz [--start SEED] [--count N] [--output DIR] [--kind plain|structures|mixed]
"""

import argparse
import traceback
from itertools import count
from pathlib import Path

from tests.random_programs.checking import KINDS, check
from tests.random_programs.generator import file_text


def fuzz(start: int, number: int | None, output: Path, group: int = 6, kind: str = "plain") -> int:
    """Verify ``number`` programs (without end where it is ``None``); return how many groups failed."""
    failed = 0
    for first in count(start, group):
        if number is not None and first >= start + number:
            break
        seeds = list(range(first, first + group))
        try:
            found = check(seeds, dataflow_seconds=5, kind=kind)
            report = "" if found.passed else found.table()
        except Exception:  # noqa: BLE001 - whatever breaks off is what is looked for
            report = traceback.format_exc()
        print(f"{first}: {'failed' if report else 'passed'}", flush=True)
        if report:
            failed += 1
            output.mkdir(parents=True, exist_ok=True)
            (output / f"random_{first}.mf").write_text(file_text(seeds, KINDS[kind]))
            (output / f"random_{first}.txt").write_text(report)
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description="Verify random programs without end.")
    parser.add_argument("--start", type=int, default=1000, help="the first seed")
    parser.add_argument("--count", type=int, help="how many programs; without end by default")
    parser.add_argument("--output", type=Path, default=Path("build/fuzz"), help="where failures are written")
    parser.add_argument("--kind", choices=sorted(KINDS), default="plain", help="what the programs are made of")
    options = parser.parse_args()
    failed = fuzz(options.start, options.count, options.output, kind=options.kind)
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
