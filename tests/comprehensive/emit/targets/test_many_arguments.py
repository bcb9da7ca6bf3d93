"""Kernels with more arguments than a device takes: known before any compiler of the device sees them."""

import pytest
from click.testing import CliRunner

from metafork.comprehensive.cli import cli


def program(count):
    parameters = ", ".join(f"double v{number}" for number in range(count))
    added = "".join(f"      s += v{number};\n" for number in range(count))
    return (
        f"void f(int n, {parameters}, double y[n])\n{{\n  meta_schedule meta_block(8) {{\n"
        f"    meta_for (int i = 0; i < n; i++) {{\n      double s = i;\n{added}      y[i] = s;\n    }}\n  }}\n}}\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cuda", "ptx"])
def test_a_leaf_with_too_many_bytes_is_left_out(tmp_path, monkeypatch, backend):
    monkeypatch.setattr("metafork.comprehensive.emit.targets.target.MOST_ARGUMENT_BYTES", 400)
    monkeypatch.chdir(tmp_path)
    quick = ("--counters", "threads_per_block", "--strategies", "granularity", "--backend", backend, "-o", "out")
    for count, leaves in ((40, 1), (60, 0)):
        (tmp_path / "f.mf").write_text(program(count))
        done = CliRunner().invoke(cli, ["optimize", "f.mf", *quick])
        assert done.exit_code == 0, done.output
        assert len(list((tmp_path / "out" / "leaves").glob("*.mf"))) == leaves
        assert ("more than the 400 of a kernel's parameters" in done.output) == (leaves == 0)
