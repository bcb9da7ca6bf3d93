import pytest

from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from metafork.swizzle.language.elaborate import load
from metafork.swizzle.search.search import solutions

HEAD = "x: [6] = input\nl: [3, 2] = \\i, j. x[i + 3 * j]\n"
BROKEN = [
    ("x: [6] = inpt{}(x)\n", "MF0902", 1, 10, "there is no gather 'inpt'"),
    ("x [6] = input\n", "MF0901", 1, 3, "expected ':'"),
    ("x: [6] = input $\n", "MF0901", 1, 16, "'$' starts nothing"),
    (HEAD + "y: [3] = \\i. z[i]\n", "MF0902", 3, 14, "there is no array 'z'"),
    (HEAD + "y: [3, 3] = l\n", "MF0903", 3, 4, "the shape [3, 3], and what it is given has the shape [3, 2]"),
    (HEAD + "y: [3, 2] = l * x\n", "MF0903", 3, 13, "'l' has the shape [3, 2] and 'x' [6]"),
    (HEAD + "y: [3, 2] = \\i, j. x[i + 4 * j]\n", "MF0903", 3, 13, "reads 'x' at index 6 of axis 0"),
    (HEAD + "y: [3, 2] = \\i. x[i]\n", "MF0903", 3, 13, "a function of 1 indices cannot fill the shape [3, 2]"),
    (HEAD + "y: [3, 2] = ?transfrom{axis=0}(l)\n", "MF0902", 3, 13, "there is no hole '?transfrom'"),
    (HEAD + "y: [3, 2] = ?rotate{axs=0}(l)\n", "MF0902", 3, 21, "there is no option 'axs'"),
    (HEAD + "y: [3, 2] = ?transform{axis=0}(l)\n", "MF0904", 3, 13, "needs the option 'secondary'"),
    (HEAD + "y: [3, 2] = ?rotate{axis=2}(l)\n", "MF0903", 3, 13, "so there is no axis 2"),
    (HEAD + "y: [3, 2] = ?transform{axis=0, secondary=1, level=5}(l)\n", "MF0904", 3, 13, "levels are 0 to 4, not 5"),
    (HEAD + "x: [6] = input\n", "MF0904", 3, 10, "'x' is defined twice"),
    (HEAD + "s: [3] = fold(-)(l)\n", "MF0901", 3, 15, "as the operator of a fold"),
    (HEAD + "s: [3] = fold(+)(l)\nt: [] = fold(+)(s)\n", "MF0901", 4, 5, "expected a name or a number"),
    (HEAD + "goal l = \\i, j. y[i]\n", "MF0902", 3, 17, "there is no array 'y'"),
    (HEAD + "goal l = \\i, j. x[i + 9]\n", "MF0903", 3, 17, "there is no element [9]"),
    (HEAD + "goal l = [[x[0], x[1]], [x[2], x[3]]]\n", "MF0903", 3, 10, "4 values do not fill the shape [3, 2]"),
    (HEAD + "goal l = spec { for i < 3 { l[i, 2] = x[i]; } }\n", "MF0903", 3, 29, "there is no element [0, 2]"),
    (HEAD, "MF0904", 1, 1, "the sketch has no goal"),
    (HEAD + "y: [3, 2] = \\i, j. l[x[0], j]\n", "MF0904", 3, 22, "swizzles do not depend on data"),
    (HEAD + "y: [3, 2] = ?keep{over=[0, 2]}(l)\n", "MF0903", 3, 13, "so there is no axis 2"),
    (HEAD + "y: [3, 2] = ?keep{where=[1]}(l)\n", "MF0904", 3, 13, "pairs of an axis and an index"),
    (HEAD + "y: [3, 2] = ?keep{where=[1, 2]}(l)\n", "MF0903", 3, 13, "has no index 2"),
    (HEAD + "y: [3, 2] = ?select{axis=1, over=[3]}(l)\n", "MF0903", 3, 13, "so there is no axis 3"),
    ("let s = 3\nlet s = 4\n" + HEAD, "MF0904", 2, 1, "'s' is defined twice"),
    ("define f(v: [2]) -> [2] = \\i. v[i]\n" * 2 + HEAD, "MF0904", 2, 1, "'f' is defined twice"),
    ("warp 1\nwarp 2\n" + HEAD, "MF0904", 2, 1, "'warp' is given twice"),
    ("name a\nname b\n" + HEAD, "MF0904", 2, 1, "'name' is given twice"),
    (HEAD + "y: [3, 3] = \\i, i. x[i]\n", "MF0904", 3, 17, "'i' is a parameter twice"),
    (HEAD + "y: [3, 2] = ?rotate{axis=0, axis=1}(l)\n", "MF0904", 3, 29, "the option 'axis' is given twice"),
    (HEAD + "y: [3, 2] = ?rotate{axis=0, main=1}(l)\n", "MF0904", 3, 13, "'axis' and 'main' say the same"),
    (HEAD + "y: [3, 2] = \\i, j. x[i / j]\n", "MF0904", 3, 22, "divisors must be positive at [0, 0]"),
    (HEAD + "y: [3, 2] = \\i, j. x[i % (j - 1) + 1]\n", "MF0904", 3, 22, "division by -1"),
    (HEAD + "y: [3, 2] = \\i, j. j > 0 || i / j > 0 ? x[i] : 0\n", "MF0904", 3, 29, "division by 0"),
    (HEAD + "y: [3, 2] = \\i, j. x[i * 1000000 * 1000000 / 1000000]\n", "MF0904", 3, 22, "does not fit into 32 bits"),
    (HEAD + "y: [6 / 0] = x\n", "MF0904", 3, 5, "division by 0"),
    (HEAD + "goal l = \\i, j. x[i / j]\n", "MF0904", 3, 19, "division by 0"),
    (HEAD + "goal l = \\i, j. x[i / -1]\n", "MF0904", 3, 19, "division by -1"),
    ("let n = 1000000000\nx: [n] = input\n", "MF0903", 2, 4, "has 1000000000 elements, more than"),
    ("let n = 1000000000\nx: [4] = input\ny: [n, n] = \\i, j. x[0]\n", "MF0903", 3, 4, "elements, more than"),
    (HEAD + "goal l = spec { for i < 1000000000 { for j < 9 { } } }\n", "MF0904", 3, 17, "more than 1000000 steps"),
    pytest.param(
        HEAD + "goal l = \\i, j. sum(k < 1000000000) x[0]\n",
        *("MF0904", 3, 17, "more than 1000000 steps"),
        marks=pytest.mark.slow,
    ),
    (HEAD + "goal l = spec { for i < 100000 { l[0, 0] += x[0]; } }\n", "MF0904", 3, 34, "more than 1000000 steps"),
    (HEAD + "s: [3] = fold(+)(?accumulate{count=1000000000}(l))\n", "MF0903", 3, 18, "elements, more than"),
    ("x: [60000] = input\ny: [60000] = ?rotate{axis=0}(x)\n", "MF0904", 2, 14, "too many to list"),
    ("let n = 99999999999999999999\n" + HEAD, "MF0901", 1, 9, "numbers go up to 2147483647"),
    ("let n = " + "9" * 5000 + "\n" + HEAD, "MF0901", 1, 9, "numbers go up to 2147483647"),
    ("let n = " + "(" * 9000 + "1" + ")" * 9000 + "\n" + HEAD, "MF0901", 1, 1, "nested too deeply"),
    (HEAD + "goal l = \\i, j. x[0" + " + 0" * 9000 + "]\n", "MF0901", 1, 1, "nested too deeply"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "line", "column", "message"), BROKEN)
def test_diagnostics_say_where_and_what(text, code, line, column, message):
    with pytest.raises(DiagnosticsError) as caught:
        load(Source("broken.swz", text))
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.span.line, diagnostic.span.column) == (code, line, column), diagnostic
    assert message in diagnostic.message


def goal_of(text):
    problem = load(Source("goal.swz", text))
    return [problem.terms.text(term) for term in problem.goal_terms]


def test_three_spellings_of_one_goal():
    start = "x: [4] = input\nl: [2, 2] = \\i, j. x[i + 2 * j]\no: [2] = fold(+)(l)\n"
    function = goal_of(start + "goal o = \\i. sum(j < 2) x[2 * j + i]\n")
    array = goal_of(start + "goal o == [x[2] + x[0], x[1] + x[3]]\n")
    program = goal_of(start + "goal o = spec { for i < 2 { for j < 4 { if (j % 2 == i) { o[i] += x[j]; } } } }\n")
    assert function == array == program == ["x0 + x2", "x1 + x3"]


def test_constants_shapes_and_comments():
    problem = load(
        Source("c.swz", "# a comment\nlet s = 3 # another\nx: [2 * s] = input\ngoal x = \\i. x[i]\n"), {"s": 4}
    )
    assert problem.statement("x").shape == (8,)
    with pytest.raises(DiagnosticsError, match="no constant 't'"):
        load(Source("c.swz", "let s = 3\nx: [s] = input\ngoal x = \\i. x[i]\n"), {"t": 1})


def test_swizzleflow_spellings_give_the_same_problem():
    text = """
        x: [96] = range(0, 96)
        loaded: [32, 3] = load_rep(x)
        s1: [32, 3] = ?row_xforms(loaded)
        s2: [32, 3] = ?row_rots(s1)
        s3: [32, 3] = ?xforms{main=0, second=1, out=0}(s2)
        s4: [32, 3] = ?col_rots(s3)
        out: [32] = fold s4
        goal out = \\i. sum(j < 3) x[3 * i + j]
    """
    assert len(solutions(load(Source("sum.swz", text)))) == 2


def test_named_gathers_read_what_they_say():
    text = """
        x: [6] = input
        a: [2, 3] = reshape(x)
        b: [3, 2] = transpose(a)
        c: [3, 4, 2] = broadcast{group=1}(b)
        d: [2, 3, 4] = rot_idx{r=1}(c)
        e: [2, 3, 4, 2] = stack(d, d)
        goal e = \\i, j, k, l. x[3 * i + j]
    """
    assert len(solutions(load(Source("gathers.swz", text)))) == 1


def test_a_user_defined_set_of_gathers():
    text = """
        define turn(v: [4]) -> [4] = \\i. v[(i + 1) % 4] | \\i. v[3 - i] | \\i. i == 0 ? 0 : v[i]
        define back(v: [4]) -> [4] = \\i. v[3 - i]
        x: [4] = input
        a: [4] = ?turn(x)
        b: [4] = back(a)
        goal b = \\i. x[i]
    """
    problem = load(Source("user.swz", text))
    (only,) = solutions(problem)
    (hole,) = problem.holes()
    assert hole.options.expression(only.options["a"]).name == "turn_1"


@pytest.mark.parametrize(
    ("shape", "hole", "message"),
    [
        ("[300, 200]", "?rotate{axis=0}(x)", ""),
        ("[3000, 200]", "?rotate{axis=0}(x)", "has 600000 elements, more than"),
        ("[250, 250]", "?transform{axis=0, secondary=1}(x)", "too many options to list"),
    ],
)
def test_sketches_beyond_a_group_of_threads_are_refused_at_once(shape, hole, message):
    text = f"x: {shape} = input\ny: {shape} = {hole}\ngoal y = \\i, j. x[i, j]\n"
    if not message:
        assert len(load(Source("large", text)).holes()) == 1
        return
    with pytest.raises(DiagnosticsError, match=message):
        load(Source("large", text))
