from pathlib import Path

from tests.runtime.compiling import INCLUDE, WARNINGS, succeed

HERE = Path(__file__).parent
STANDIN = HERE.parent / "comprehensive" / "emit" / "targets"


def test_updates_and_accesses_of_neighbours_are_those_of_c(tmp_path):
    folders = (f"-I{HERE}", f"-I{STANDIN}", f"-I{INCLUDE}")
    flags = ("-std=c++17", "-O0", *WARNINGS, "-Wno-unknown-pragmas", *folders)
    succeed(["g++", *flags, HERE / "device_header.cc", "-o", tmp_path / "device_header", "-lpthread"])
    assert succeed([tmp_path / "device_header"]).stdout == "end\n"
