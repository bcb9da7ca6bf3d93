import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from metafork.comprehensive.cli import cli
from metafork.comprehensive.commands.faults import shown
from metafork.ir.messages.diagnostics import Diagnostic, Severity
from metafork.ir.messages.source import NOWHERE

QUICK = ["--counters", "threads_per_block,shared_memory", "--strategies", "granularity,caching", "--order", "paper"]
EXAMPLE = Path("examples/jacobi1d.mf").resolve()
BAD = "void f(int n, float *a) { meta_schedule { meta_for (int i = 0; i < n; i++) a[i] = 0; } }\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments):
        return CliRunner().invoke(cli, [str(argument) for argument in arguments])

    return invoke


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """What ``optimize`` writes of the example."""
    folder = tmp_path_factory.mktemp("optimized") / "jacobi1d.out"
    result = CliRunner().invoke(cli, ["optimize", str(EXAMPLE), *QUICK, "-o", str(folder)])
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def optimized(run, output):
    return shutil.copytree(output, Path("jacobi1d.out"))


def test_optimize_writes_everything(optimized):
    names = {str(path.relative_to(optimized)) for path in optimized.rglob("*") if path.is_file()}
    assert {
        "jacobi1d.tree.json",
        "jacobi1d.tree.dot",
        "jacobi1d.tree.svg",
        "jacobi1d.h",
        "jacobi1d.cu",
        "jacobi1d_host.c",
        "CMakeLists.txt",
        "report.md",
        "report.html",
        "leaves/jacobi1d_k0_leaf1.mf",
        "leaves/jacobi1d_k0_leaf3.ll",
    } <= names
    assert not any(name.endswith(".ptx") for name in names)


def test_optimize_summarises_what_it_did(run):
    result = run("optimize", EXAMPLE, *QUICK, "-o", "here")
    assert re.search(r"\|- 2\*B \+ 2 <= Z \.+ leaf 2 \(a in shared memory, s joined the grid\)\n", result.output)
    assert "here/report.html" in result.output


def test_what_follows_names_the_machine_that_was_asked_for(run):
    """And no other one with the same limits."""
    output = run("optimize", EXAMPLE, *QUICK, "--machine", "sm_103", "-o", "here").output
    assert "next: metafork select here --machine sm_103 N=" in output


def test_optimize_emits_ptx(run):
    assert run("optimize", EXAMPLE, *QUICK, "--emit", "ptx", "--target", "sm_90").exit_code == 0
    assert ".target sm_90" in Path("jacobi1d.out/leaves/jacobi1d_k0_leaf2.ptx").read_text(encoding="utf-8")


def test_optimize_prints_json_without_writing(run):
    result = run("optimize", EXAMPLE, *QUICK, "--json")
    assert json.loads(result.stdout)["schedules"][0]["name"] == "jacobi1d_k0"
    assert not Path("jacobi1d.out").exists()


def test_several_files_have_a_directory_each(run):
    result = run("optimize", EXAMPLE, EXAMPLE.with_name("transpose.mf"), *QUICK, "-o", "all")
    assert result.exit_code == 0
    assert Path("all/jacobi1d.out/report.md").exists()
    assert Path("all/transpose.out/report.md").exists()


def test_a_fault_of_the_input_is_status_1_and_leaves_the_old_output(run, optimized):
    before = (optimized / "report.md").read_text(encoding="utf-8")
    Path("jacobi1d.mf").write_text(BAD, encoding="utf-8")
    result = run("optimize", "jacobi1d.mf", *QUICK)
    assert result.exit_code == 1
    assert "jacobi1d.mf:1:" in result.stderr
    assert "Traceback" not in result.output
    assert (optimized / "report.md").read_text(encoding="utf-8") == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--counters", "shared_memry"], "did you mean: shared_memory?"),
        (["--strategies", "cachng"], "did you mean: caching?"),
        (["--machine", "SM_80"], "did you mean: sm_80 (A100, A30)?"),
        (["--machine", "h1000"], "there is no machine 'h1000'"),
        (["--machine", ","], "',' has an empty entry"),
        (["--machine", "R=63,,T=96"], "'R=63,,T=96' has an empty entry"),
        (["--machine", "sm_80..sm_90,"], "has an empty entry"),
        (["--assume", "b <= 3"], "no parameter 'b'"),
        (["--static", "b=3"], "did you mean 'B'"),
        (["--static", "N=3"], "N is no program parameter"),
        (["--static", "s"], "'s' is not NAME=VALUE,VALUE..."),
        (["--jit", "--backend", "opencl"], "--jit is for --backend cuda and ptx: --backend opencl has no NVRTC"),
        (["--emit", "sass"], "'sass' is not one of 'ptx', 'object'"),
        (["--time-limit", "-1"], "-1"),
    ],
)
def test_mistakes_in_options_are_status_2(run, options, message):
    result = run("optimize", EXAMPLE, *QUICK, *options)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_time_limit_while_the_file_is_read(run, optimized, monkeypatch):
    def forever(*_, **__):
        while True:
            sum(range(1000))

    before = {path: path.read_bytes() for path in optimized.rglob("*") if path.is_file()}
    monkeypatch.setattr("metafork.comprehensive.optimize.parse", forever)
    monkeypatch.setattr("metafork.comprehensive.optimize.LEAST_READING", 0.01)
    result = run("optimize", EXAMPLE, *QUICK, "--time-limit", "0")
    assert result.exit_code == 4
    assert "jacobi1d.mf: the time limit passed while the file was read; nothing is written" in result.stderr
    assert {path: path.read_bytes() for path in optimized.rglob("*") if path.is_file()} == before


def test_a_drawing_that_takes_too_long_is_told(run, monkeypatch):
    def endless(result, seconds=None):
        raise subprocess.TimeoutExpired("dot", 1.0)

    monkeypatch.setattr("metafork.comprehensive.optimize.Result.to_svg", endless)
    result = run("optimize", EXAMPLE, *QUICK)
    assert result.exit_code == 4
    assert "jacobi1d.tree.svg is not drawn" in result.stderr
    assert "the time limit ended the run early; the drawing is left out" in result.stderr


def test_a_time_limit_is_told(run):
    result = run("optimize", EXAMPLE, *QUICK, "--time-limit", "0")
    assert result.exit_code == 4
    assert "the time limit ended the run early; the tree is incomplete" in result.stderr
    assert (
        json.loads(Path("jacobi1d.out/jacobi1d.tree.json").read_text(encoding="utf-8"))["schedules"][0]["complete"]
        is False
    )
    assert "time limit" in Path("jacobi1d.out/report.md").read_text(encoding="utf-8")


def test_render_draws_a_tree(run, optimized):
    tree = optimized / "jacobi1d.tree.json"
    assert run("render", tree, "-o", "tree.svg").exit_code == 0
    assert Path("tree.svg").read_text(encoding="utf-8") == (optimized / "jacobi1d.tree.svg").read_text(encoding="utf-8")
    assert run("render", tree, "-o", "tree.dot").exit_code == 0
    assert Path("tree.dot").read_text(encoding="utf-8").startswith("digraph")
    assert run("render", tree).stdout.rstrip().endswith("</svg>")
    Path("bad.json").write_text("{}", encoding="utf-8")
    refused = run("render", "bad.json")
    assert (refused.exit_code, "not a decision tree" in refused.stderr) == (1, True)
    assert run("render", tree, "-o", "tree.png").exit_code == 0
    assert Path("tree.png").read_bytes().startswith(b"\x89PNG")
    pdf = run("render", tree, "-o", "tree.pdf")  # as the Graphviz that is installed can
    assert Path("tree.pdf").read_bytes()[:5] == b"%PDF-" if pdf.exit_code == 0 else not Path("tree.pdf").exists()
    assert (run("render", tree, "-o", "tree.txt").exit_code, Path("tree.txt").exists()) == (2, False)
    before = tree.read_bytes()
    assert (run("render", tree, "-o", tree).exit_code, tree.read_bytes() == before) == (2, True)


def test_select_walks_the_tree(run, optimized):
    result = run("select", optimized, "--machine", "sm_80", "N=1000", "s=4", "B=32", "t=0")
    assert result.output.startswith("jacobi1d_k0: leaf 1 (a in shared memory)\n  variant 5, jacobi1d_k0_leaf1\n")
    assert "not leaf 3: Z < 2*B + 2 does not hold: 41728 >= 66" in result.output
    short = run("select", optimized, "--machine", "sm_80", "s=4", "B=32").output
    assert short == result.output + "  N, t may have any value for which the program is defined\n"
    tight = run("select", optimized, "--machine", "sm_80,Z=100", "N=1000", "s=4", "B=32", "t=0", "--json")
    [schedule] = json.loads(tight.stdout)["schedules"]
    assert (schedule["leaf"], schedule["kernel"]) == (2, "jacobi1d_k0_leaf2")
    assert schedule["others"]["1"] == ["2*s*B + 2 <= Z does not hold: 258 > 100"]
    outside = run("select", optimized, "--machine", "sm_80", "N=1000", "s=4", "B=2048", "t=0")
    assert "B <= block_dim_x does not hold: 2048 > 1024" in outside.output


def test_a_schedule_that_can_never_run_is_told(run):
    loops = "meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < 4; j++) a[i] += j;"
    Path("never.mf").write_text(f"void f(int n, int a[n]) {{ if (n < 0) meta_schedule {{ {loops} }} }}")
    told = run("optimize", "never.mf", *QUICK, "-o", "never.out").output
    assert "never_k0 (never.mf:1): 0 leaves" in told
    assert "  no parameters, on no machine asked for, satisfy all that it assumes: the serial code runs" in told


def test_instances_are_told(run):
    result = run("optimize", EXAMPLE, *QUICK, "--static", "s=2,4", "-o", "static.out")
    assert "    also compiled for s=2, s=4" in result.output
    assert Path("static.out/leaves/jacobi1d_k0_leaf1_v2.mf").is_file()
    point = ("select", "static.out", "--machine", "sm_80", "N=1000", "B=32", "t=0")
    assert "  variant 2, jacobi1d_k0_leaf1_v2: for s = 4\n" in run(*point, "s=4").output
    assert "  variant 3, jacobi1d_k0_leaf1\n" in run(*point, "s=3").output
    chosen = [json.loads(run(*point, s, "--json").stdout)["schedules"][0] for s in ("s=2", "s=3")]
    kernels = [(one["variant"], one["kernel"]) for one in chosen]
    assert kernels == [(1, "jacobi1d_k0_leaf1_v1"), (3, "jacobi1d_k0_leaf1")]
    result = run("optimize", EXAMPLE, *QUICK, "-o", "static.out")
    assert "    also compiled for B=256 s=4, B=128 s=4, B=256 s=2, B=64 s=4" in result.output
    assert Path("static.out/leaves/jacobi1d_k0_leaf1_v4.mf").is_file()
    run("optimize", EXAMPLE, *QUICK, "--static", "none", "-o", "static.out")
    assert not list(Path("static.out/leaves").glob("*_v*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--machine", "sm_80", "n=3"], "did you mean 'N'"),
        (["--machine", "sm_80", "N=3"], "no value is given for s, B (write s=...)"),
        (["--machine", "R=3", "N=3", "s=1", "B=1", "t=0"], "--machine does not give registers_per_block"),
        (["--machine", "sm_80", "N=x"], "N=x: give a whole number"),
        (["--machine", "sm_80", "N"], "'N' is not NAME=VALUE"),
        (["--machine", "sm_80", "--schedule", "other"], "no schedule 'other'"),
        (["--machine", "sm_79", "N=3"], "no machine 'sm_79'"),
    ],
)
def test_mistakes_in_a_selection_are_status_2(run, optimized, arguments, message):
    result = run("select", optimized, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_hundred_findings_are_printed_and_no_error_is_left_out_for_a_warning(run):
    Path("many.mf").write_text("#if 0\n" * 130, encoding="utf-8")
    result = run("check", "many.mf")
    assert result.exit_code == 1
    assert result.stderr.count(": error[MF0004]") == 100
    assert result.stderr.endswith("\n30 more of 130 findings: --diagnostics json lists all.\n")
    as_json = run("check", "--diagnostics", "json", "many.mf")
    assert len(json.loads(as_json.stdout)["diagnostics"]) == 130
    warnings = [Diagnostic("MF0403", Severity.WARNING, f"w{number}.", NOWHERE, "f.mf") for number in range(150)]
    error = Diagnostic("MF0001", Severity.ERROR, "the error", replace(NOWHERE, line=5, start=6), "f.mf")
    text = shown([*warnings, error], {}, "text", False)
    assert text.count("warning") == 99
    assert "the error" in text
    assert text.endswith("\n51 more of 151 findings: --diagnostics json lists all.\n")


def test_check_reports_in_three_formats(run):
    Path("bad.mf").write_text(BAD, encoding="utf-8")
    good = run("check", EXAMPLE)
    assert (good.exit_code, good.output) == (0, f"{EXAMPLE}: 1 schedule, no errors\n")
    text = run("check", EXAMPLE, "bad.mf")
    assert text.exit_code == 1
    assert "bad.mf:1:" in text.stderr
    as_json = run("check", "bad.mf", EXAMPLE, "--diagnostics", "json")
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)
    sarif = run("check", "bad.mf", "--diagnostics", "sarif")
    assert json.loads(sarif.stdout)["version"] == "2.1.0"


def test_a_file_that_is_no_text(run):
    Path("odd.mf").write_bytes(b"\xff\xfe\x00")
    result = run("check", "odd.mf")
    assert result.exit_code == 1
    assert "odd.mf:1:1: error[MF0001]" in result.stderr


def test_help_answers_at_once():
    # Processor time, which does not depend on what else the machine is doing.
    command = [sys.executable, "-c", "from metafork.comprehensive.cli import main; main()", "--help"]
    times = []
    for _ in range(3):
        before = os.times()
        finished = subprocess.run(command, capture_output=True, text=True, check=True)
        after = os.times()
        times.append(after.children_user + after.children_system - before.children_user - before.children_system)
    assert "optimize" in finished.stdout
    assert min(times) < 0.15


def test_help_of_commands_imports_nothing_heavy():
    code = (
        "import sys; from click.testing import CliRunner; from metafork.comprehensive.cli import cli\n"
        "for name in ('optimize', 'render', 'select', 'check'):\n"
        "    assert CliRunner().invoke(cli, [name, '--help']).exit_code == 0\n"
        "assert not {'sympy', 'z3', 'llvmlite', 'numpy', 'islpy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
