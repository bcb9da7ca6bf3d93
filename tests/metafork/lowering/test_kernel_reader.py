import pytest

from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import Space
from metafork.printing.cuda import kernel_text
from tests.metafork.lowering.kernel_reader import NotAKernel, read_kernel, read_kernels


def test_memories_and_arguments():
    kernel = read_kernel(
        """
        // a comment; and another /* inside */
        void k(int n, unsigned long long u, const float *a, double *b) {
          extern char t[n];
          extern double s[4];
          short kept[8];
          kept[0] = t[0] + a[n] + u;
        }
        """
    )
    assert [(one.name, one.type) for one in kernel.scalars] == [
        ("n", ScalarType.INT),
        ("u", ScalarType.UNSIGNED_LONG_LONG),
    ]
    assert [(one.name, one.space, one.read_only) for one in kernel.memories] == [
        ("a", Space.GLOBAL, True),
        ("b", Space.GLOBAL, False),
        ("t", Space.SHARED, False),
        ("s", Space.SHARED, False),
        ("kept", Space.PRIVATE, False),
    ]
    # The doubles start at a multiple of eight.
    assert "METAFORK_SHARED_ARRAY(char, t, metafork_shared, 0L, n);" in kernel_text(
        read_kernel("void k(int n, char *o) { extern char t[n]; o[0] = t[0]; }")
    )


def test_several_kernels():
    assert [kernel.name for kernel in read_kernels("void f(int *a) {} void g(int *a) {}")] == ["f", "g"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("goto end; end: ;", "Goto"),
        ("x = 1;", "variable x"),
        ("a[0] = frobnicate(n);", "function frobnicate"),
        ("q[0] = 1;", "array q"),
        ("struct s v;", "type"),
        ("n + 1 = 2;", "an assignment to something"),
    ],
)
def test_what_no_kernel_has_is_refused_by_name(body, message):
    with pytest.raises(NotAKernel, match=message):
        read_kernel(f"void k(int n, int *a) {{ {body} }}")


def test_one_kernel_means_one():
    with pytest.raises(NotAKernel, match="exactly one"):
        read_kernel("void f(int *a) {} void g(int *a) {}")
