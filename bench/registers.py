"""Register estimates against ``ptxas``: measure, calibrate, score.

    python bench/registers.py measure     # runs nvcc and ptxas on every leaf, writes bench/registers/measured.json
    python bench/registers.py calibrate   # fits evaluators/register_model.json to the programs that are not held out
    python bench/registers.py score       # prints the figures, writes bench/results/registers.json
    python bench/registers.py time        # how long one evaluation takes

Only ``measure`` needs nvcc and ptxas; the figures of the others follow from its file.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "registers"))

import calibration  # noqa: E402
import corpus  # noqa: E402
import oracle  # noqa: E402

from evaluators.register_model import measure, model_from_json  # noqa: E402
from metafork.llvm_ir import module_text  # noqa: E402
from metafork.lowering import lower  # noqa: E402
from metafork.ptx_target import REGISTER_PRESSURE, emit_ptx, external_functions, optimize, parsed  # noqa: E402

TARGET = "sm_80"
MEASURED = HERE / "registers/measured.json"
MODEL = corpus.ROOT / "evaluators/register_model.json"
RESULTS = HERE / "results/registers.json"


def measure_all() -> None:
    """Ask nvcc and ptxas about every leaf, as text and as the PTX of each IR strategy."""
    text: dict[str, int] = {}
    ptx: dict[str, int] = {}
    for path in corpus.programs():
        leaves = list(corpus.leaves(path))
        text |= oracle.registers_of_text([leaf.kernel for leaf in leaves], TARGET)
        for leaf in leaves:
            ir = module_text(leaf.kernel)
            if external_functions(parsed(ir)):
                continue
            for name in REGISTER_PRESSURE:
                modules = {leaf.name: emit_ptx(optimize(ir, (name,), TARGET), TARGET)}
                ptx[f"{leaf.name}/{name}"] = oracle.registers_of_ptx(modules, TARGET)[leaf.name]
        print(f"{path.stem}: {len(leaves)} leaves", flush=True)
    document = {"target": TARGET, "ptxas": oracle.version(), "text": text, "ptx": ptx}
    MEASURED.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def samples() -> tuple[list[calibration.Sample], list[calibration.Sample]]:
    """Return the samples for kernels as text and for kernels as PTX, counted now."""
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    text, ptx = [], []
    for path in corpus.programs():
        for leaf in corpus.leaves(path):
            if leaf.name in measured["text"]:
                counted = measure(leaf.kernel)
                text.append(calibration.Sample(leaf.program, leaf.name, counted, measured["text"][leaf.name]))
            for strategy in REGISTER_PRESSURE:
                name = f"{leaf.name}/{strategy}"
                if name in measured["ptx"]:
                    counted = measure(leaf.kernel, (strategy,))
                    ptx.append(calibration.Sample(leaf.program, name, counted, measured["ptx"][name]))
    return text, ptx


def calibrate() -> None:
    """Fit both models to the programs that are not held out."""
    held = corpus.held_out()
    seen = [[one for one in kind if one.program not in held] for kind in samples()]
    models = [calibration.calibrate(kind) for kind in seen]
    MODEL.write_text(json.dumps(calibration.document(*models), indent=2) + "\n", encoding="utf-8")
    for name, model, kind in zip(("text", "ptx"), models, seen, strict=True):
        print(name, model, calibration.score(model, kind), sep="\n  ")


def score() -> None:
    """Score the shipped models on the held-out programs, and by leaving out each program in turn."""
    held = corpus.held_out()
    document = json.loads(MODEL.read_text(encoding="utf-8"))
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    result: dict[str, object] = {"target": TARGET, "ptxas": measured["ptxas"], "held_out_programs": sorted(held)}
    for name, kind in zip(("text", "ptx"), samples(), strict=True):
        model = model_from_json(document, name)
        out = [one for one in kind if one.program in held]
        result[name] = {
            "held_out": calibration.score(model, out),
            "calibration": calibration.score(model, [one for one in kind if one.program not in held]),
            "kernels": {one.name: [model.registers(one.measured), one.registers] for one in out},
        }
        print(name, json.dumps(result[name]["held_out"]), json.dumps(result[name]["calibration"]), sep="\n  ")
        worst = sorted(kind, key=lambda one: -abs(model.registers(one.measured) - one.registers) / one.registers)
        for one in worst[:12]:
            print("   ", one.name, "estimate", model.registers(one.measured), "ptxas", one.registers)
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
