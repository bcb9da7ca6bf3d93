"""bench/texts.py: the text of a run has every kernel, and the diagnostics of what is refused."""

from texts import told

from metafork.ir.messages.source import Source

TEXT = """
void f(int n, int B, const float x[n], float y[n]) {
  meta_static(B: 64) meta_schedule meta_for (int i = 0; i < n / B; i++) meta_for (int u = 0; u < B; u++)
    y[i * B + u] = 2 * x[i * B + u];
}
"""


def test_leaves_and_instances():
    text = told(Source("f.mf", TEXT), "default")
    kernels = [line for line in text.splitlines() if line.startswith("METAFORK_KERNEL")]
    assert [line.split(", ")[1] for line in kernels] == [
        "f_k0_leaf1_v1",
        *(f"f_k0_leaf1_v{n}" for n in (2, 3)),
        "f_k0_leaf1",
    ]


def test_what_is_refused():
    assert "MF0401" in told(Source("f.mf", TEXT.replace("y[i * B + u]", "y[0]")), "paper")
