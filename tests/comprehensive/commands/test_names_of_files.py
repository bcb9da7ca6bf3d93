"""Files whose names are no UTF-8, or no text that URIs have, in every command and option."""

import json
import os
import subprocess
from urllib.parse import unquote_to_bytes, urlsplit

import pytest

import metafork
from metafork.ir.messages.diagnostics import Diagnostic, Severity, render_sarif
from metafork.ir.messages.source import NOWHERE
from tests.comprehensive.metafork_command import METAFORK
from tests.runtime.compiling import run

NAME = os.fsdecode(b"sc\xffale")
PROGRAM = "#include <rows.h>\nvoid f(int n, float x[n])\n"
PROGRAM += "{\n  meta_schedule meta_block(8) { meta_for (int i = 0; i < n; i++) x[i] = ROWS; }\n}\n"
PLUGIN = "from metafork.strategies.granularity import STRATEGY\n"
QUICK = "--counters threads_per_block --strategies granularity"
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("environment", [{}, ASCII])
@pytest.mark.parametrize(
    ("command", "status"),
    [
        (f"optimize {QUICK} -o S/S.out --depfile S/S.d -IS S/S.mf", 0),
        ("check -IS --diagnostics sarif S/S.mf", 0),
        (f"verify {QUICK} --registers none --points 1 -IS S/S.mf", 0),
        (f"optimize {QUICK} --plugin S/S.py -IS -DS S/S.mf", 2),
        ("explain -IS S/S.mf", 0),
        ("apply granularity -IS S/S.mf", 0),
        ("apply S -IS S/S.mf", 2),
        ("select S/S.mf --machine sm_80", 2),
        ("render S/S.mf -o S/S.svg", 2),
        ("shuffle S/S.mf -o S/S.ptx", 1),
        ("swizzle S/S.mf", 1),
        ("optimize --assume S<=3 -IS S/S.mf", 2),
        ("S", 2),
    ],
)
@pytest.mark.sampled(1)
def test_every_command_takes_such_names(tmp_path, command, status, environment):
    folder = tmp_path / NAME
    folder.mkdir()
    (folder / f"{NAME}.mf").write_text(PROGRAM)
    (folder / "rows.h").write_text("#define ROWS 3\n")
    (folder / f"{NAME}.py").write_text(PLUGIN)
    words = command.replace("S", NAME).split()
    done = subprocess.run(
        [METAFORK, *words], cwd=tmp_path, capture_output=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == status, (done.stdout, done.stderr)
    assert b"internal error" not in done.stderr
    if "depfile" in command:
        assert os.fsencode(f"{NAME}/rows.h") in (folder / f"{NAME}.d").read_bytes()
        texts = [path.read_text("utf-8") for path in (folder / f"{NAME}.out").iterdir() if path.is_file()]
        assert sum("sc\N{REPLACEMENT CHARACTER}ale.mf" in text for text in texts) >= 3


@pytest.mark.parametrize("name", ["x y.mf", "a:b.mf", "50%/ü#?.mf", f"/tmp/{NAME}.mf", "/a b/c.mf"])
def test_sarif_names_files_by_uris(name):
    found = Diagnostic("MF0301", Severity.ERROR, "no", NOWHERE, name)
    (result,) = json.loads(render_sarif([found]))["runs"][0]["results"]
    uri = urlsplit(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])
    assert (uri.scheme, uri.netloc, uri.query, uri.fragment) == ("file" if name.startswith("/") else "", "", "", "")
    assert (unquote_to_bytes(uri.path), uri.path.isascii()) == (os.fsencode(name), True)


def test_the_version_is_that_of_the_command():
    assert run([METAFORK, "--version"]).stdout == f"metafork, version {metafork.__version__}\n"
    assert "__version__" in dir(metafork)
