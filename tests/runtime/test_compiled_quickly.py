"""The runtime is compiled quickly, and what includes it as its compiler was told."""

import re

from tests.runtime.compiling import CPLUSPLUS, INCLUDE, WARNINGS, succeed

SUM = 'extern "C" unsigned {}(unsigned n) {{ unsigned s = 0; for (unsigned i = 0; i < n; i++) s += 3; return s; }}'
TEXT = "\n".join(
    [
        SUM.format("before"),
        '#include "metafork/dispatch.h"',
        SUM.format("after"),
        "METAFORK_COMPILED_QUICKLY",
        SUM.format("quickly"),
        "METAFORK_COMPILED_AS_GIVEN",
    ]
)


def test_only_the_runtime_is_optimized_less(tmp_path):
    (tmp_path / "one.cu").write_text(TEXT)
    compiler = (*CPLUSPLUS, *WARNINGS, "-O2", "-S", f"-I{INCLUDE}")
    succeed([*compiler, tmp_path / "one.cu", "-o", tmp_path / "one.s"])
    text = (tmp_path / "one.s").read_text()
    before, after, quickly = (instructions(text, name) for name in ("before", "after", "quickly"))
    assert before == after
    assert len(before) < len(quickly)  # the sum is a product, without a loop


def instructions(text, name):
    """Return those of one function, with labels as one."""
    body = re.search(rf"^{name}:\n(.*?)\.cfi_endproc", text, re.MULTILINE | re.DOTALL)[1]
    lines = (line.strip() for line in body.splitlines())
    return [re.sub(r"\.L\w+", "label", line) for line in lines if line and not line.startswith(".")]
