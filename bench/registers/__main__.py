"""Register estimates against ``ptxas``: measure, calibrate, score.

    python bench/registers measure      # runs nvcc and ptxas on every leaf, writes bench/registers/measured.json
    python bench/registers calibrate    # fits evaluators/registers/model.json to the programs that are not held out
    python bench/registers score        # prints the figures, writes bench/results/registers.json
    python bench/registers time         # how long one evaluation takes

Only ``measure`` needs nvcc and ptxas; the figures of the others follow from its file.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import calibration
import corpus
import oracle

from metafork.evaluators.registers.model import measure, model_from_json, model_to_json
from metafork.ir.kernel import Kernel
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import emit_ptx, external_functions, optimize, parsed
from metafork.lowering.lowering import lower
from metafork.printing.cuda import kernel_text
from metafork.strategies.llvm.register_pressure import PIPELINES

HERE = Path(__file__).resolve().parent
TARGET = "sm_80"
PASSES = {pipeline.name: pipeline for pipeline in PIPELINES}
KINDS = ("text", "ptx")
_SEEDS = 5
MEASURED = HERE / "measured.json"
MODEL = corpus.ROOT / "evaluators/registers/model.json"
RESULTS = HERE.parent / "results/registers.json"


@dataclass(frozen=True)
class Code:
    """What is handed to a compiler: a kernel's text, or the PTX of an IR strategy; ``digest`` tells them apart."""

    kernel: Kernel
    strategy: str = ""

    @property
    def name(self) -> str:
        """The key in the file of measurements."""
        return f"{self.kernel.name}/{self.strategy}" if self.strategy else self.kernel.name

    @cached_property
    def ptx(self) -> str:
        """The PTX of the strategy."""
        return emit_ptx(optimize(module_text(self.kernel), PASSES[self.strategy].passes, TARGET), TARGET)

    @cached_property
    def digest(self) -> str:
        """A short digest of the text or the PTX."""
        text = self.ptx if self.strategy else kernel_text(self.kernel)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def codes(leaf: corpus.Leaf) -> list[Code]:
    """Return what is compiled for a leaf: its text, and its PTX where LLVM has code for all that it calls."""
    external = external_functions(parsed(module_text(leaf.kernel)))
    return [Code(leaf.kernel), *(Code(leaf.kernel, name) for name in PASSES if not external)]


def measure_all() -> None:
    """Ask nvcc and ptxas about all code that changed since the last time."""
    known = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    version = oracle.version()
    old = known.get("registers", {}) if known.get("ptxas") == version else {}
    asked = [code for path in corpus.programs() for leaf in corpus.leaves(path) for code in codes(leaf)]
    fresh = [code for code in asked if old.get(code.name, ["", 0])[0] != code.digest]
    print(f"{len(asked)} kernels, {len(fresh)} to be measured", flush=True)
    found = oracle.registers_of_text([code.kernel for code in fresh if not code.strategy], TARGET)
    for code in fresh:
        if code.strategy:
            found[code.name] = oracle.registers_of_ptx(code.kernel.name, code.ptx, TARGET)
    registers = {code.name: [code.digest, found.get(code.name) or old[code.name][1]] for code in asked}
    MEASURED.write_text(
        json.dumps({"target": TARGET, "ptxas": version, "registers": registers}, indent=1) + "\n", encoding="utf-8"
    )


def samples(names: Collection[str]) -> tuple[list[calibration.Sample], list[calibration.Sample]]:
    """Return the samples of the named programs, for kernels as text and for kernels as PTX, counted now.

    Raises ``SystemExit`` where code differs from what was measured.
    """
    registers = json.loads(MEASURED.read_text(encoding="utf-8"))["registers"]
    text: list[calibration.Sample] = []
    ptx: list[calibration.Sample] = []
    for path in corpus.programs():
        for leaf in corpus.leaves(path) if path.stem in names else ():
            for code in codes(leaf):
                digest, truth = registers.get(code.name, ("", 0))
                if digest != code.digest:
                    sys.exit(f"{code.name} is not the code that was measured: run measure again")
                counted = measure(leaf.kernel, (PASSES[code.strategy],) if code.strategy else ())
                (ptx if code.strategy else text).append(calibration.Sample(leaf.program, code.name, counted, truth))
    return text, ptx


def by_kind(estimates: Sequence[int], kernels: Sequence[calibration.Sample]) -> dict[str, dict[str, float]]:
    """Return the figures of merit for kernels as text and for kernels as PTX."""
    figures = {}
    for name in KINDS:
        chosen = [index for index, one in enumerate(kernels) if one.terms.from_text == (name == "text")]
        figures[name] = calibration.score([estimates[index] for index in chosen], [kernels[index] for index in chosen])
    return figures


def calibrate() -> None:
    """Fit the model to the programs that are not held out, and say how models do on programs they did not see."""
    seen = [one for kind in samples({path.stem for path in corpus.programs()} - corpus.held_out()) for one in kind]
    model = calibration.calibrate(seen)
    MODEL.write_text(json.dumps(model_to_json(model, TARGET), indent=2) + "\n", encoding="utf-8")
    print(model, by_kind([model.registers(one.terms) for one in seen], seen), sep="\n  ")
    for seed in range(_SEEDS):
        print("  cross-validated", by_kind(calibration.cross_validated(seen, seed), seen))


def score() -> None:
    """Score the shipped model on the held-out programs."""
    held = corpus.held_out()
    model = model_from_json(json.loads(MODEL.read_text(encoding="utf-8")))
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    result: dict[str, object] = {"target": TARGET, "ptxas": measured["ptxas"], "held_out_programs": sorted(held)}
    outside = [one for kind in samples(held) for one in kind]
    inside = [one for kind in samples({path.stem for path in corpus.programs()} - held) for one in kind]
    out = by_kind([model.registers(one.terms) for one in outside], outside)
    fitted = by_kind([model.registers(one.terms) for one in inside], inside)
    crossed = [by_kind(calibration.cross_validated(inside, seed), inside) for seed in range(_SEEDS)]
    for name in KINDS:
        chosen = [one for one in outside if one.terms.from_text == (name == "text")]
        kernels = {one.name: [model.registers(one.terms), one.registers] for one in chosen}
        mean = {key: round(statistics.mean(one[name][key] for one in crossed), 3) for key in crossed[0][name]}
        result[name] = {
            "held_out": out[name],
            "calibration": fitted[name],
            "cross_validation": mean,
            "kernels": kernels,
        }
        print(name, *(json.dumps(one) for one in (out[name], fitted[name], mean)), sep="\n  ")
        worst = sorted(kernels.items(), key=lambda item: -abs(item[1][0] - item[1][1]) / item[1][1])
        for kernel, (estimate, truth) in worst[:12]:
            print("   ", kernel, "estimate", estimate, "ptxas", truth)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def time_all() -> None:
    """Print milliseconds of processor time of one evaluation: of the whole counter, and without lowering."""
    whole, counting = [], []
    for path in corpus.programs():
        for leaf in corpus.leaves(path):
            start = time.process_time()
            lower(leaf.version.program, leaf.name)
            middle = time.process_time()
            measure(leaf.kernel)
            end = time.process_time()
            whole.append(end - start)
            counting.append(end - middle)
    for name, seconds in (("with lowering", whole), ("without lowering", counting)):
        print(f"{name}: median {statistics.median(seconds) * 1e3:.1f} ms, largest {max(seconds) * 1e3:.1f} ms")


if __name__ == "__main__":
    actions = {"measure": measure_all, "calibrate": calibrate, "score": score, "time": time_all}
    if len(sys.argv) != 2 or sys.argv[1] not in actions:
        sys.exit(__doc__)
    actions[sys.argv[1]]()
