"""Verify random programs without end (``make fuzz``); what fails is written to a directory with its report.

python -m tests.random_programs.fuzz [--start SEED] [--count N] [--output DIR] [--kind KIND]
python -m tests.random_programs.fuzz --batch N [--minutes M] [--jobs J] ...

With ``--batch`` only the leaves are compared with the serial elision, many programs a build (``make fuzz BATCH=N``).
"""

import argparse
import os
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from secrets import randbelow

from tests.random_programs.batch import check_batch
from tests.random_programs.checking import KINDS, check
from tests.random_programs.generator import file_text

TOGETHER = 25
"""Programs of one build in batch mode."""


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
            keep(output, f"random_{first}", file_text(seeds, KINDS[kind]), report)
    return failed


def fuzz_batches(
    start: int,
    number: int,
    output: Path,
    jobs: int,
    minutes: float | None = None,
    kind: str = "plain",
) -> int:
    """Compare the variants of ``number`` programs, or of what ``minutes`` allow; return how many programs failed."""
    begun = time.monotonic()
    parts = [range(at, min(at + TOGETHER, start + number)) for at in range(start, start + number, TOGETHER)]
    programs = failed = variants = ran = launches = 0
    with ProcessPoolExecutor(jobs) as pool:
        for part, found in zip(parts, pool.map(partial(check_batch, generator=KINDS[kind]), parts), strict=True):
            programs += len(part)
            variants, ran, launches = variants + found.variants, ran + found.ran, launches + found.launches
            failed += len(found.failures)
            for seed, report in found.failures.items():
                print(f"{seed}: {report.splitlines()[0][:200]}", flush=True)
                keep(output, f"batch_{seed}", file_text([seed], KINDS[kind]), report)
            passed = time.monotonic() - begun
            if programs % 1000 < TOGETHER:
                print(f"{programs} programs, {failed} failed, {60 * programs / passed:.0f} a minute", flush=True)
            if minutes is not None and passed > 60 * minutes:
                pool.shutdown(cancel_futures=True)
                break
    rate = 60 * programs / (time.monotonic() - begun)
    print(
        f"{programs} programs, {failed} failed; "
        f"{ran} of {variants} variants ran, {launches} launches; {rate:.0f} a minute"
    )
    return failed


def keep(output: Path, name: str, text: str, report: str) -> None:
    """Write a program and its report."""
    output.mkdir(parents=True, exist_ok=True)
    (output / f"{name}.mf").write_text(text)
    (output / f"{name}.txt").write_text(report)


def main() -> None:
    parser = argparse.ArgumentParser(description="Verify random programs without end.")
    parser.add_argument("--start", type=int, help="the first seed; another one each time by default")
    parser.add_argument("--count", type=int, help="how many programs; without end by default")
    parser.add_argument("--output", type=Path, default=Path("build/fuzz"), help="where failures are written")
    parser.add_argument("--kind", choices=sorted(KINDS), default="plain", help="what the programs are made of")
    parser.add_argument("--batch", type=int, help="how many programs of which only the leaves are compared")
    parser.add_argument("--minutes", type=float, help="when a batch is cut short")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="builds of a batch at a time")
    options = parser.parse_args()
    start = randbelow(10**9) if options.start is None else options.start
    print(f"--start {start}", flush=True)
    if options.batch is None:
        failed = fuzz(start, options.count, options.output, kind=options.kind)
    else:
        failed = fuzz_batches(start, options.batch, options.output, options.jobs, options.minutes, options.kind)
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
