"""Assignments in expressions and steps of loops: ``a = b = e``, ``v[k++] = x``, ``while (++k < m)``, ``i++, j--``."""

from metafork.frontend import parse
from metafork.ir.messages.source import Source
from metafork.ir.program import For, walk_statements
from tests.metafork.frontend.marked import assert_refused, thread
from tests.metafork.kernel_runs import Case, grid, run

COVARIANCE = """
void chained(int n, int B, const float a[n], double c[n][n], signed char s[n], int t[n], float last[n])
{
  meta_schedule
    meta_for (int b = 0; b < (n + B - 1) / B; b++)
      meta_for (int x = 0; x < B; x++) {
        int i = b * B + x, k, l;
        if (i >= n) continue;
        for (int j = i; j < n; j++)
          c[i][j] = c[j][i] = a[i] * a[j] / 3;
        t[i] = s[i] = 100 * i + 77;
        t[i] += s[i] -= 3;
        k = l = i / 2 + 1;
        last[i] = c[i][k < n ? k : i] += l = k *= 2;
        if (i > 2) k = t[i] = l; else t[i] -= k = 7;
        last[i] += k + l;
      }
}
"""
INSIDE = """
static int twice(int x) { int r = 0; for (int k = 0; k < 2; k++) r += x; return r; }

void inside(int n, int m, int B, const float a[n], float out[n][4], int t[n], unsigned char u[n])
{
  meta_schedule
    meta_for (int b = 0; b < (n + B - 1) / B; b++)
      meta_for (int x = 0; x < B; x++) {
        int i = b * B + x, k = 0, l = 5, s;
        if (i >= n) continue;
        float v[8];
        for (int q = 0; q < 2; q++)
          for (int r = 0; r < 4; r++)
            v[k++] = a[i] * q + r;
        k = 0;
        while (k < 8 && v[k++] < 3.0f)
          l--;
        do {
          if (k % 2) continue;
          l += 2;
        } while (++k < 7 && l-- > 0);
        out[i][0] = k;
        out[i][1] = (s = l) > 2 ? s++ : --s;
        out[i][2] = twice(k++) + twice(l -= m ? 2 : 3);
        for (int q = m; q-- > 0;) s += q * q;
        unsigned char w = 255;
        u[i] = ++w + 1;
        int z = w++ || l++;
        out[i][3] = (s % 3 == 0 && k++ > 2) || ((l = k) > 0 && (s -= 2)) ? 1 : z;
        if ((s = i % 3) != 0 && --l) t[i] = s; else t[i] = l-- * 100 + k;
        t[i] += l += k = s++;
        t[i] += s * 10 + k;
      }
}
"""
STEPS = """
void steps(int n, int m, int B, const int a[n][m], int t[n][3])
{
  meta_schedule
    meta_for (int b = 0; b < (n + B - 1) / B; b++)
      meta_for (int x = 0; x < B; x++) {
        int i = b * B + x, s = 0, p, q;
        if (i >= n) continue;
        for (int k = 0, last = m - 1; k < last; k++, last--) {
          if (a[i][k] % 3 == 0) continue;
          if (a[i][last] == 7) break;
          s = s * 3 + a[i][k] - a[i][last];
        }
        t[i][0] = s;
        for (p = 0, q = 1; p < m; p += 2, q = q * 3 + p) s += q;
        for (int k = 1, r = k + 1; k + r < 20; r += k, ++k) {
          int w = 0;
          while (1) { if (w++ > 2) break; else continue; }
          s ^= r * w;
        }
        t[i][1] = s;
        t[i][2] = p - q;
      }
}
"""
RANDOM = """
#include <stdint.h>
struct generator { uint64_t state, odd; };
static uint32_t pcg(struct generator *g)
{
  uint64_t old = g->state;
  g->state = old * 6364136223846793005ULL + (g->odd | 1);
  uint32_t x = (uint32_t)(((old >> 18) ^ old) >> 27), turn = (uint32_t)(old >> 59);
  return (x >> turn) | (x << ((-turn) & 31));
}
static uint64_t split(uint64_t *s) { uint64_t z = (*s += 0x9e3779b97f4a7c15ULL); return z ^ (z >> 30); }
static uint32_t shifted(uint32_t *s) { uint32_t x = *s; x ^= x << 13; x ^= x >> 17; return *s = x ^ (x << 5); }
static uint32_t beside(uint32_t k, uint32_t *s) { return k + shifted(s); }
static int narrowed(signed char *c, int k) { return *c = k * 100; }

void drawn(int n, int m, int B, uint32_t y[n][m], uint64_t z[n], int t[n][2])
{
  meta_schedule
    meta_for (int b = 0; b < (n + B - 1) / B; b++)
      meta_for (int x = 0; x < B; x++) {
        int i = b * B + x;
        if (i >= n) continue;
        uint64_t s = i;
        uint32_t w = i + 1, last[2];
        signed char c = 0;
        struct generator g;
        g.state = split(&s);
        g.odd = split(&s);
        for (int k = 0; k < m; k++)
          y[i][m - 1 - k] = pcg(&g) % 1000;
        z[i] = split(&s) / 3 + x;
        last[i % 2] = shifted(&w);
        last[1 - i % 2] = shifted(&w);
        t[i][0] = (i + 1) * -narrowed(&c, i);
        t[i][0] += z[i] % 9 + shifted(&w) % 5;
        z[i] -= beside(w + 1, &w);
        uint32_t more = beside(w, &w);
        z[i] ^= more;
        int again = last[0] = last[1] / 3;
        t[i][1] = again + c;
      }
}
"""


def test_values_are_those_of_the_targets(tmp_path):
    cases = [
        Case(COVARIANCE, grid(n=[1, 6, 13], B=[1, 4])),
        Case(INSIDE, grid(n=[1, 13], m=[0, 3], B=[1, 4])),
        Case(STEPS, grid(n=[1, 13], m=[1, 6], B=[4])),
        Case(RANDOM, grid(n=[1, 13], m=[1, 6], B=[4])),
    ]
    assert run(cases, tmp_path) == {}


def test_a_loop_with_two_variables_counts_by_its_own():
    text = """
    void f(int n, int B, const int a[n], int c[n]) {
      meta_schedule
        meta_for (int i = 0; i < n / B; i++)
          meta_for (int u = 0; u < B; u++)
            for (int k = 0, sign = 1; k < B; k++, sign = -sign)
              c[i * B + u] += sign * a[i * B + k];
    }"""
    (schedule,) = parse(Source("f.mf", text)).schedules
    (loop,) = (one for one in walk_statements(schedule.program.body) if isinstance(one, For))
    assert (loop.init.name, loop.step.target.name) == ("k", "k")


def test_refused():
    assert_refused(thread("a[i] = 1 + («a[j] = 2»);"), "MF0213")
    assert_refused(thread("int k = 3; a[«a[j]++»] = k;"), "MF0213")
    assert_refused(thread("a[i] = «n»++;"), "MF0304")
    assert_refused(thread("const int k = 3; a[i] = --«k»;"), "MF0305")
    assert_refused(thread("int k = 3; a[i] = («k %= 1.5f») + 1;"), "MF0306")
    draw = "static int draw(int *s) { return *s = *s * 5 + 1; }\n"
    for place, given in (("s", "s"), ("idx[s]", "s"), ("idx[0]", "idx[0]"), ("t + s", "s"), ("t ? 1 : 0", "s")):
        assert_refused(draw + thread(f"int s = i, t = i; a[{place}] = «draw(&{given})»;"), "MF0223")
    through = "float G[9];\nvoid put(float *g) { g[1] = 2; }\n"
    for body in ("G[0] = 5; return *s = 1;", "put(G); return *s = 1;", "put(&G[2]); return *s = 1;"):
        drawn = f"{through}int draw(int *s) {{ {body} }}\n"
        assert_refused(drawn + thread("int s = i; a[i] = G[0] + «draw(&s)»;"), "MF0223")
    beside = (
        "idx[s] += «draw(&s)»",
        "s += «draw(&s)»",
        "t = s + «draw(&s)»",
        "t = t && «draw(&s)»",
        "t = idx[0] + «draw(&idx[1])»",
    )
    for one in beside:
        assert_refused(draw + thread(f"int s = i, t = i; {one};"), "MF0223")
    assert_refused(draw + thread("int s = i, t = i; t = «draw(&s)» - «draw(&t)»;"), "MF0223", "MF0223")
