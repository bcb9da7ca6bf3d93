"""What results of CUDA's driver mean to the dispatcher."""

from tests.runtime.compiling import INCLUDE, WARNINGS, C, succeed

SOURCE = """
#define METAFORK_TARGET_HEADER "metafork/target_ptx.h"
#include "metafork/launch.h"
int main(int count, char **results) {
    for (int i = 1; i < count; i++) printf("%d ", metafork_taken(atoi(results[i])));
}
"""
OK, NO_RESOURCES, NO_MEMORY, UNSUPPORTED, NO_DEVICE = 0, -3, -6, -7, -8
MEANT = {
    0: OK,
    2: NO_MEMORY,
    100: NO_DEVICE,
    701: NO_RESOURCES,
    **dict.fromkeys((200, 209, 218, 221, 222, 223), UNSUPPORTED),  # what is in the way of compiling PTX
    **{other: other for other in (1, 201, 208, 219, 220, 224, 700, 999)},
}


def test_what_keeps_ptx_from_being_compiled_is_told_from_other_results(tmp_path):
    (tmp_path / "results.c").write_text(SOURCE)
    flags = (*WARNINGS, "-Wno-unused-function", f"-I{INCLUDE}")
    succeed([*C, *flags, tmp_path / "results.c", "-o", tmp_path / "results", "-ldl", "-lpthread"])
    done = succeed([tmp_path / "results", *MEANT])
    assert dict(zip(MEANT, map(int, done.stdout.split()), strict=True)) == MEANT
