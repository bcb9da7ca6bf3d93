"""``--emit object``: the examples' leaves as object code for GPUs of AMD's, and what the report says of it."""

import pytest
from msgspec.structs import replace

from metafork.algebra.polynomial import Polynomial
from metafork.comprehensive.emit.targets.hip import Hip
from metafork.comprehensive.emit.targets.ptx import TARGET as PTX
from metafork.comprehensive.emit.targets.target import for_machine
from metafork.comprehensive.leaf_files import LeafTexts
from metafork.comprehensive.optimize import optimize
from metafork.llvm import amdgpu_target
from metafork.llvm.amdgpu_notes import resources_of
from metafork.llvm.ptx_target import TargetError
from tests.comprehensive.emit.targets.programs import EXAMPLES
from tests.comprehensive.metafork_command import metafork
from tests.sampling import sampled

GPUS = ("gfx90a", "gfx1100")
ROOTS = """
#include <math.h>
void roots(int n, int B, const float x[n], float y[n], float z[n]) {
  int blocks = n / B;
  meta_schedule cache() {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int j = 0; j < B; j++) y[i * B + j] = sqrtf(x[i * B + j]) / 3;
  }
  meta_schedule cache() {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int j = 0; j < B; j++) z[i * B + j] = tanf(x[i * B + j]);
  }
}
"""
SOME = ("--counters", "threads_per_block", "--strategies", "caching", "--static", "none")


@pytest.mark.parametrize("name", sampled({path.stem: path.stem for path in EXAMPLES.glob("*.mf")}, {"aos", "center"}))
def test_every_leaf_of_the_examples_has_object_code(name):
    result = optimize(EXAMPLES / f"{name}.mf", static="auto" if name == "center" else None)
    leaves = [one for tree in result.schedules for leaf in tree.leaves for one in leaf.variants]
    assert leaves
    for gpu in GPUS:
        texts = LeafTexts(result.analyses, object_target=gpu)
        files, problems = texts.files(result)
        assert problems == []
        report = result.to_report(texts.compiled())
        for leaf in leaves:
            found = resources_of(files[f"leaves/{leaf.kernel}.o"], leaf.kernel)
            assert found.wave_size == Hip(gpu).hardware.warp_size
            assert 0 < found.vgprs <= (128 if gpu == "gfx90a" else 256)  # 1024 threads share the registers of a unit
            assert 0 < found.sgprs <= 108
            assert f"- as object code for {gpu}: {found.vgprs} VGPRs" in report
        assert report.count(f"as object code for {gpu}") == len(leaves)


def test_the_command_writes_it_and_says_where_there_is_none(tmp_path):
    (tmp_path / "roots.mf").write_text(ROOTS)
    done = metafork("optimize", "roots.mf", *SOME, "--emit", "object", "--target", "gfx1100", "-o", "out", cwd=tmp_path)
    leaves = tmp_path / "out" / "leaves"
    assert {path.name for path in leaves.glob("*.o")} == {"roots_k0_leaf1.o"}
    assert resources_of((leaves / "roots_k0_leaf1.o").read_bytes(), "roots_k0_leaf1").wave_size == 32
    reason = "roots_k1_leaf1 has no object file: no exact code without AMD's device library: tanf"
    assert f"metafork: {reason}\n" in done.stderr
    assert "as object code for gfx1100: " in (tmp_path / "out" / "report.md").read_text()
    # What a run without the option leaves behind is its own.
    metafork("optimize", "roots.mf", *SOME, "-o", "out", cwd=tmp_path)
    assert not list(leaves.glob("*.o"))


@pytest.mark.parametrize("gpu", GPUS)
def test_trees_for_hip_count_the_registers_of_objects(gpu):
    result = optimize(EXAMPLES / "jacobi1d.mf", hardware=Hip(gpu).hardware, strategies=["granularity", "caching"])
    (tree,) = result.schedules
    texts = LeafTexts(result.analyses, target=Hip(gpu), object_target=gpu)
    files, _ = texts.files(result)
    for leaf in tree.leaves:
        found = resources_of(files[f"leaves/{leaf.kernel}.o"], leaf.kernel)
        assert leaf.counters["registers_per_thread"].numerator == Polynomial.constant(found.vgprs + found.spilled)
    # NVIDIA's compiler needs others.
    other = optimize(EXAMPLES / "jacobi1d.mf", strategies=["granularity", "caching"]).schedules[0]
    assert other.leaves[0].counters["registers_per_thread"] != tree.leaves[0].counters["registers_per_thread"]


def test_registers_for_which_there_were_none_count_too(monkeypatch):
    def spilling(code, kernel):
        return replace(resources_of(code, kernel), vgprs=100, spilled=7)

    monkeypatch.setattr(amdgpu_target, "resources_of", spilling)
    (tree,) = optimize(EXAMPLES / "jacobi1d.mf", hardware=Hip().hardware, strategies=["caching"]).schedules
    assert {leaf.counters["registers_per_thread"].numerator for leaf in tree.leaves} == {Polynomial.constant(107)}


def test_hip_is_for_the_gpu_of_the_machine_unless_another_is_said():
    for machine, gpu in (
        ("gfx1100", "gfx1100"),
        ("T=512, gfx942,Z=100", "gfx942"),
        ("sm_80", "gfx90a"),
        ("", "gfx90a"),
    ):
        assert for_machine(Hip(), machine) == Hip(gpu)
    # PTX is for all newer GPUs, too.
    assert for_machine(PTX, "sm_90") == PTX


def test_registers_that_nobody_counts_are_left_out_with_a_note(monkeypatch):
    def missing(target):
        raise TargetError(f"this build of llvmlite has no AMDGPU target, so no object code for {target}")

    monkeypatch.setattr(amdgpu_target, "_machine", missing)
    result = optimize(EXAMPLES / "jacobi1d.mf", hardware=Hip().hardware, strategies=["caching"])
    (tree,) = result.schedules
    assert [counter.name for counter in tree.counters] == ["threads_per_block", "shared_memory"]
    assert tree.leaves
    said = "left out: no code: this build of llvmlite has no AMDGPU target, so no object code for gfx90a"
    assert {note for note in tree.notes if note[1] == said} == {
        (name, said) for name in ("registers_per_thread", "registers_per_block")
    }


def test_gpus_that_are_none_of_amd(tmp_path):
    (tmp_path / "roots.mf").write_text(ROOTS)
    asked = ("optimize", "roots.mf", *SOME, "--emit", "object", "-o", "out")
    for gpu, said in (("sm_80", "sm_80 is no GPU of AMD's; targets look like gfx90a"), ("gfx777", "no target gfx777")):
        assert said in metafork(*asked, "--target", gpu, status=2, cwd=tmp_path).stderr
        assert not (tmp_path / "out").exists()
