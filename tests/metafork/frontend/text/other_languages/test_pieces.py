"""The pieces of source that a help shows."""

import pytest

from metafork.frontend.text.other_languages.advice import spelled
from metafork.frontend.text.other_languages.calls import allocated, refused_call
from metafork.frontend.text.other_languages.files import python_file
from metafork.frontend.text.other_languages.heads import head_around, with_block_size, with_parameter
from metafork.frontend.text.other_languages.indices import of_dimensions
from metafork.frontend.text.other_languages.types import foreign_type
from metafork.frontend.text.other_languages.words import element_index, foreign_head, power


@pytest.mark.parametrize(
    ("head", "with_b"),
    [
        ("void f(void)", "void f(int B)"),
        ("int f ()", "int f(int B)"),
        ("void f(int n,\n  int m)", "void f(int n, int m, int B)"),
        ("static void f(float *x, int n)", "static void f(int B, float *x, int n)"),
        ("void f(int n, float x[n], int B)", ""),
    ],
)
def test_heads_with_the_size_of_a_block(head, with_b):
    assert with_block_size(head, ()) == ("B", with_b)


def test_a_name_that_is_taken_is_no_size_of_a_block():
    assert with_block_size("void f(int n)", {"B", "block"}) == ("block_size", "void f(int n, int block_size)")
    assert with_parameter("void f(float B)", "int block") == "void f(float B, int block)"


def test_the_head_around_a_place_is_that_of_a_function():
    before = (
        "int g(int a) { if (a) { return 1; } return 2; }\nvoid f(int n,\n  float x[n])\n{\n  for (;;) {\n    if (n) {"
    )
    assert head_around(before) == "void f(int n, float x[n])"
    assert head_around("int n;\n") is None


@pytest.mark.parametrize(
    ("schedule", "index"),
    [
        ("meta_schedule meta_block(B) { meta_for (int i = 0; i < n; i++)", "i"),
        ("meta_schedule { meta_for (int b = 0; b < n / B; b++) meta_for (int u = 0; u < B; u++)", "b * B + u"),
        ("meta_schedule { meta_for (b = 0; b < n; b++) meta_for (u = 0; u < 2 * B; u++)", "b * (2 * B) + u"),
        ("", "i"),
    ],
)
def test_the_index_of_an_element(schedule, index):
    assert element_index(f"meta_schedule {{ meta_for (int z = 0; z < 3; z++) ; }} {schedule}") == (
        index if schedule else "z"
    )


def test_calls_that_no_schedule_has():
    assert refused_call("sqrtf", ["x"], "") is None
    assert refused_call("mine", [], "") is None
    assert "one.x -= 2" in refused_call("atomicSub", ["&(one.x)", "2"], "").help
    assert refused_call("atomicCAS", ["&x[0]", "1", "2"], "").message == "`atomicCAS` is a function of CUDA"
    assert allocated("t", "int", "mine", ["4"]) is None
    assert allocated("t", "int", "calloc", ["8", "sizeof(int)"]).help.endswith("int t[8];")
    assert allocated("t", "float", "malloc", ["sizeof(float) * 2 * 3"]).help.endswith("float t[2 * 3];")


def test_types_that_kernels_do_not_have():
    assert foreign_type(["float"], "x") is None
    assert foreign_type(["float5"], "x") is None
    assert "typedef struct { unsigned char x, y, z; } triple;" in foreign_type(["uchar3"], "x").help
    assert foreign_type(["__float128"], "x[n]").help == "use `double x[n]`."


def test_powers_and_heads():
    assert power("x", "y").help == "write `pow(x, y)`, or `powf(x, y)` for `float`."
    assert foreign_head("for", "i = 1, n").help.endswith("for (int i = 1; i <= n; i++)")
    assert foreign_head("meta_for", "int i = 0; i < n") is None


def test_dimensions():
    assert "give as many indices" in of_dimensions("int x", 2, [["i"]], "").help
    loops = "meta_schedule { for (int i = 0; i < n; i++) for (int j = 0; j < 8; j++)"
    assert "`const int x[n][8]`" in of_dimensions("const int x", 1, [["i"], ["j"]], loops).help


def test_tokens_as_people_write_them():
    assert spelled(["std", ":", ":", "array", "<", "float", ",", "16", ">", "&", "x"]) == "std::array<float, 16> &x"
    assert spelled(["x", "[", "i", "+", "1", "]", ",", "f", "(", "a", ",", "2", ")"]) == "x[i + 1], f(a, 2)"


@pytest.mark.parametrize("text", ["int main(void) { return 0; }\n", "@interface A {}\n", "#define import\nimport x\n"])
def test_other_files_are_no_python(text):
    assert python_file(text) is None
