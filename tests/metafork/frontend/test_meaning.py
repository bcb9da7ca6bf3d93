"""A parsed program computes what its serial elision computes: printed back as C, both are compiled and run."""

import re
import shutil
import subprocess

import pytest

from metafork.frontend import parse
from metafork.ir.messages.source import Source
from metafork.printing.metafork_text import metafork_text

COMPILER = shutil.which("gcc") or shutil.which("cc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler to compare with")

NUMBERS = {"n": 7, "m": 5, "k": 3}

PROGRAMS = {
    "hidden names": """
        #define TWICE(x) ((x) + (x))
        #define PUT(to, from) to = (from)
        void f(int n, int m, int k, double a[n][m], int b[n * m]) {
          int i = 2, rows = n - i;
          meta_schedule {
            meta_for (int p = 0; p < rows; p++) { int base = p * m;
              meta_for (int q = 0; q < m; q++) {
                int i = base + q; int k_1 = k;
                { int i = q; double k = 0.5; PUT(a[p][i], k + TWICE(i + 1)); }
                for (int q = 0, r = k_1; q < r; q++) { if (q == 2) continue; b[i] += q; }
                for (int q = 4; q > 1; --q) b[i] -= q << 1;
              } } } }
    """,
    "types": """
        typedef unsigned char byte;
        void f(int n, int m, int k, float x[n], byte c[n], long long w[m], unsigned u[n]) {
          const int d = n / 2;
          meta_schedule { meta_for (int i = 0; i < d; i++) meta_for (int j = 0; j < 2; j++) {
            int p = 2 * i + j; byte t = 250; t += p * 3; c[p] = t;
            u[p] = p - 3u > 2 ? ~u[p] : -u[p]; x[p] = x[p] * 3 / 2 + (char)(p + 'a') % 7 - 1e-1f;
            w[p % m] = w[p % m]; if (!(p & 1) && p != 4 || p == 5) x[p] = sqrt(x[p] * x[p]) + fmaxf(x[p], k);
            if (i == 0 && j == 0) { int s = 0; while (1) { s++; if (s > 5) break; } w[0] = s * (1ll << 33) - 010; }
          } } }
    """,
    "blocks": """
        void f(int n, int m, int k, double a[n][m], double b[n]) {
          meta_schedule { meta_for (int i = 0; i < n; i++) {
            double tile[m]; int step = k;
            for (int r = 0; r < 2; r++) { step += r; double scale = step * 0.25;
              if (step % 2) { meta_for (int j = 0; j < m; j++) tile[j] = a[i][j] * scale; }
              else meta_for (int j = 0; j < m; j++) { tile[j] = a[i][j] + i; }
              meta_for (int j = 0; j < m; j++) { double s = 0; for (int l = 0; l <= j; l++) s += tile[l]; a[i][j] = s; }
            } } } }
    """,
}


def driver(function, prototype):
    """A main program that fills the arrays, calls the function and prints all bytes of the arrays."""
    lines = ["int main(void) {", *(f"  int {name} = {value};" for name, value in NUMBERS.items())]
    arrays = [one for one in function.parameters if one.array is not None]
    for one in arrays:
        extents = "".join(f"[{extent}]" for extent in re.findall(r"\[([^]]*)\]", one.declaration))
        lines.append(f"  static unsigned char {one.name}_bytes[8192]; (void)sizeof(char{extents});")
        lines.append(f"  for (int i = 0; i < 8192; i++) {one.name}_bytes[i] = 0;")
        type_ = one.array.element.spelling
        lines.append(f"  {type_} *{one.name} = ({type_} *){one.name}_bytes;")
        lines.append(f"  for (int i = 0; i < 64; i++) {one.name}[i] = ({type_})((i * 37 + 11) % 101);")
    names = [re.search(r"(\w+)\s*(?:\[|$)", part.strip()).group(1) for part in prototype.split(",")]
    lines.append("  f(" + ", ".join(f"(void *){name}" if name not in NUMBERS else name for name in names) + ");")
    lines += [f'  for (int i = 0; i < 8192; i++) printf("%d,", {one.name}_bytes[i]);' for one in arrays]
    return "\n".join([*lines, "  return 0;", "}", ""])


def run(text, function, folder, name):
    prototype = re.search(r"void f\((.*?)\)\s*\{", text, re.DOTALL).group(1)
    source = folder / f"{name}.c"
    source.write_text(
        "#include <stdio.h>\n#include <math.h>\n#include <assert.h>\n" + text + driver(function, prototype)
    )
    elision = ["-Dmeta_for=for", "-Dmeta_schedule=", "-Dcache(...)="]
    command = [COMPILER, "-std=gnu11", "-O0", "-ffp-contract=off", "-fsanitize=undefined", *elision]
    subprocess.run([*command, "-o", folder / name, source, "-lm"], check=True, capture_output=True, text=True)
    return subprocess.run([folder / name], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_meaning(name, tmp_path):
    text = PROGRAMS[name]
    unit = parse(Source("f.mf", text))
    (schedule,) = unit.schedules
    printed = metafork_text(schedule.program)
    assert printed != text
    before = run(text, unit.functions[0], tmp_path, "before")
    assert before.count(",") >= 2 * 8192
    assert run(printed, unit.functions[0], tmp_path, "after") == before
