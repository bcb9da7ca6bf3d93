"""``metafork shuffle`` and ``metafork ptxas-wrapper``, as a user calls them."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from metafork.comprehensive.cli import cli

DATA = Path(__file__).parents[2] / "metafork" / "ptx" / "data"
needs_ptxas = pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on PATH")
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on PATH")


def invoke(*arguments):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture
def jacobi(tmp_path):
    path = tmp_path / "jacobi.ptx"
    path.write_text((DATA / "jacobi.ptx").read_text())
    return path


class TestShuffle:
    def test_writes_a_new_file_and_reports(self, jacobi, tmp_path):
        before = jacobi.read_text()
        done = invoke("shuffle", jacobi, "-o", tmp_path / "out.ptx")
        assert done.exit_code == 0
        assert "jacobi: 6 shuffles / 9 loads, mean |delta| 1.00" in done.stdout
        assert "signed-index" in done.stdout
        assert (tmp_path / "out.ptx").read_text().count("shfl.sync") == 6
        assert jacobi.read_text() == before

    def test_json_report(self, jacobi, tmp_path):
        done = invoke("shuffle", jacobi, "-o", tmp_path / "out.ptx", "--report", "json", "--no-hoist")
        document = json.loads(done.stdout)
        assert (document["format"], document["version"], document["valid"]) == ("metafork-shuffle", 1, True)
        (kernel,) = document["kernels"]
        assert (kernel["name"], kernel["loads"], len(kernel["shuffles"])) == ("jacobi", 9, 6)
        lines = jacobi.read_text().splitlines()
        for shuffle in kernel["shuffles"]:
            line, column = shuffle["at"]
            assert lines[line - 1][column - 1 :].startswith("ld.global")
            assert 1 <= abs(shuffle["delta"]) <= 2

    def test_without_output_the_ptx_goes_to_standard_output(self, jacobi):
        done = invoke("shuffle", jacobi)
        assert done.stdout.startswith(".version 9.0")
        assert "jacobi: 6 shuffles" in done.stderr

    def test_max_delta(self, jacobi, tmp_path):
        done = invoke("shuffle", jacobi, "-o", tmp_path / "out.ptx", "--max-delta", "0")
        assert "jacobi: unchanged" in done.stdout
        assert (tmp_path / "out.ptx").read_text() == jacobi.read_text()
        assert invoke("shuffle", jacobi, "--max-delta", "32").exit_code == 2

    def test_the_assumption_can_be_refused(self, jacobi):
        assert "jacobi: unchanged" in invoke("shuffle", jacobi, "--no-assume", "signed-index").stderr

    def test_measuring_variants_say_so(self, jacobi, tmp_path):
        done = invoke("shuffle", jacobi, "-o", tmp_path / "out.ptx", "--variant", "no-corner")
        assert "invalid" in done.stdout
        assert (tmp_path / "out.ptx").read_text().startswith("// INVALID RESULTS")

    def test_the_input_is_never_overwritten(self, jacobi):
        before = jacobi.read_text()
        done = invoke("shuffle", jacobi, "-o", jacobi)
        assert done.exit_code == 2
        assert jacobi.read_text() == before

    def test_an_error_points_at_its_place(self, jacobi):
        jacobi.write_text(jacobi.read_text().replace("add.f32 \t%f7, %f6, %f5;", "add.f32 \t%f7, %f6 %f5;"))
        done = invoke("shuffle", jacobi)
        assert done.exit_code == 1
        message, line, caret = done.stderr.splitlines()
        assert message.endswith("expected ';' after the operands of add, found '%f5'")
        assert ":67:" in message
        assert line.strip() == "add.f32 \t%f7, %f6 %f5;"
        assert caret.expandtabs().index("^") == line.expandtabs().index("%f5")

    def test_a_file_that_is_no_text(self, tmp_path):
        path = tmp_path / "binary.ptx"
        path.write_bytes(b"\xff\xfe\x00")
        done = invoke("shuffle", path)
        assert done.exit_code == 1
        assert "is no UTF-8 text" in done.stderr


def scripted(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


class TestWrapper:
    def test_the_assembler_gets_a_transformed_copy(self, jacobi, tmp_path):
        before = jacobi.read_text()
        assembler = scripted(tmp_path / "assembler", 'cp "$2" "$4"')
        done = invoke("ptxas-wrapper", "--ptxas", assembler, "--", "-arch=sm_80", jacobi, "-o", tmp_path / "out")
        assert done.exit_code == 0
        assert (tmp_path / "out").read_text().count("shfl.sync") == 6
        assert jacobi.read_text() == before

    def test_code_that_the_assembler_refuses_is_assembled_as_it_was(self, jacobi, tmp_path):
        assembler = scripted(tmp_path / "assembler", '! grep -q shfl "$2" && cp "$2" "$4"')
        done = invoke("ptxas-wrapper", "--ptxas", assembler, "--", "-arch=sm_80", jacobi, "-o", tmp_path / "out")
        assert done.exit_code == 0
        assert (tmp_path / "out").read_text() == jacobi.read_text()
        assert "refuses" in done.stderr

    def test_unreadable_code_is_the_assemblers_affair(self, tmp_path):
        source = tmp_path / "odd.ptx"
        source.write_text("no ptx at all\n")
        assembler = scripted(tmp_path / "assembler", "echo refused $1 >&2; exit 7")
        done = invoke("ptxas-wrapper", "--ptxas", assembler, "--", source)
        assert done.exit_code == 7
        assert f"refused {source}" in done.stderr
        assert "assembled as it is: 1:1" in done.stderr

    @pytest.mark.parametrize(
        "words",
        [
            "-arch=sm_90 IN -o OUT",
            "-arch sm_90 IN -o OUT",
            "--gpu-name=sm_90 -v IN -o OUT",
            "-O3 IN -o OUT --ptxas=ASSEMBLER -h",
            "-m64 -lineinfo -- IN -o OUT --verbose",
        ],
    )
    def test_options_with_one_dash_are_the_assemblers(self, jacobi, tmp_path, words):
        """Until version 0.1 the letters of `-arch` were options, `-h` among them."""
        assembler = scripted(tmp_path / "assembler", f'echo "$@" > {tmp_path}/words')
        known = {"IN": str(jacobi), "OUT": str(tmp_path / "out"), "--ptxas=ASSEMBLER": f"--ptxas={assembler}"}
        if "ASSEMBLER" not in words:
            words = f"--ptxas=ASSEMBLER {words}"
        done = invoke("ptxas-wrapper", *(known.get(word, word) for word in words.split()))
        assert done.exit_code == 0, done.output
        passed = [word for word in words.split() if "ASSEMBLER" not in word and word != "--"]
        heard = (tmp_path / "words").read_text().split()
        assert [word for word in heard if "ptx" not in word] == [known.get(one, one) for one in passed if one != "IN"]
        assert any(word.endswith("jacobi.ptx") for word in heard)

    def test_its_own_options_have_two_dashes(self):
        for word in ("--help", "-h"):
            assert "--toolkit" in invoke("ptxas-wrapper", word).output

    @needs_ptxas
    def test_the_real_assembler(self, jacobi, tmp_path):
        report = tmp_path / "report.jsonl"
        arguments = ["--report", report, "--", "-arch=sm_80", "-v", jacobi, "-o", tmp_path / "out.cubin"]
        done = invoke("ptxas-wrapper", *arguments)
        assert done.exit_code == 0, done.stderr
        assert "Used" in done.stderr
        assert (tmp_path / "out.cubin").read_bytes()[:4] == b"\x7fELF"
        assert len(json.loads(report.read_text())["kernels"][0]["shuffles"]) == 6

    @needs_nvcc
    @needs_ptxas
    def test_a_build_with_nvcc(self, tmp_path):
        report = tmp_path / "report.jsonl"
        done = invoke("ptxas-wrapper", "--toolkit", tmp_path / "toolkit", "--report", report)
        assert done.exit_code == 0, done.output
        source = DATA / "kernels.cu"
        common = ["-arch=sm_80", "-O3", "-DKERNEL_jacobi", "-cubin", str(source), "-o"]
        for nvcc, name in (("nvcc", "plain.cubin"), (tmp_path / "toolkit" / "nvcc", "shuffled.cubin")):
            subprocess.run([nvcc, *common, tmp_path / name], check=True, capture_output=True)
        assert (tmp_path / "plain.cubin").read_bytes() != (tmp_path / "shuffled.cubin").read_bytes()
        assert json.loads(report.read_text())["kernels"][0]["name"] == "jacobi"
