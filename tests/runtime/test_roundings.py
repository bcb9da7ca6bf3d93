"""The CPU build computes in the precision that the program asks for, however its compiler optimizes."""

import subprocess

import pytest

from tests.runtime.compiling import CPLUSPLUS, INCLUDE, succeed

# g++ 12.2 leaves out the roundings to float of these sums at -O2, without the header.
TEXT = r"""
#include "metafork/device.h"
__attribute__((noipa)) void sums(const double *METAFORK_RESTRICT a, double *METAFORK_RESTRICT w, int m) {
    float t[2] = {0, 0};
    for (int z = 0; z < m; z += 2) {
        const double p = a[z], q = a[z + 1];
        t[0] += p, t[1] += q;
        const double r = a[z + 2];
        t[0] += q, t[1] += r;
    }
    w[0] = w[0] + t[0], w[1] = w[1] + t[1];
}
int main() {
    double a[64], w[2] = {1, 2};
    for (int i = 0; i < 64; i++) a[i] = (i * 7919 % 1000003 * 104729L % 1000003) / 1000003.0;
    sums(a, w, 40);
    volatile float first = 0, second = 0;
    for (int z = 0; z < 40; z++) first = (float)(first + a[z]), second = (float)(second + a[z + 1]);
    return w[0] != 1 + (double)first || w[1] != 2 + (double)second;
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2", "-O3"])
def test_sums_are_rounded_to_their_type(tmp_path, level):
    (tmp_path / "sums.cpp").write_text(TEXT)
    program = tmp_path / "sums"
    succeed([*CPLUSPLUS, level, "-w", "-DMETAFORK_CPU", f"-I{INCLUDE}", tmp_path / "sums.cpp", "-o", program])
    assert subprocess.run([program], check=False).returncode == 0
