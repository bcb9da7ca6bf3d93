"""Random thread code: nested branches and loops over integer scalars, much of it computed twice."""

from hypothesis import strategies as st


def nest(body):
    return f"""
    void f(int N, int s, int B, float a[64], int c[64]) {{
      meta_schedule {{
        meta_for (int i = 0; i < 2; i++)
          meta_for (int j = 0; j < 2; j++) {{ {body} }}
      }}
    }}
    """


VARIABLES = ["N", "s", "i", "j", "x", "y"]
INTEGERS = st.recursive(
    st.sampled_from([*VARIABLES, "1", "2", "(N / s)", "(y % 3)", "(j % s)"]),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*+"), inner),
        st.builds("({} {} 3)".format, inner, st.sampled_from("/%")),
    ),
    max_leaves=5,
)


def statements(depth):
    simple = st.one_of(
        st.builds("c[{} + 8] = {};".format, st.sampled_from("ij"), INTEGERS),
        st.builds("c[{}] += {} % 5;".format, st.sampled_from("ij"), INTEGERS),
        st.builds("{} = {} % 9;".format, st.sampled_from("xy"), INTEGERS),
        st.builds("{{ int z = {}; c[i + 20] = z + {}; }}".format, INTEGERS, INTEGERS),
    )
    if not depth:
        return simple
    inner = st.lists(statements(depth - 1), min_size=1, max_size=3).map(" ".join)
    return st.one_of(
        simple,
        st.builds("if ({} < {}) {{ {} }}".format, INTEGERS, INTEGERS, inner),
        st.builds("if ({} && {} > 1) {{ {} }} else {{ {} }}".format, INTEGERS, INTEGERS, inner, inner),
        st.builds("for (int w = 0; w < 2; w++) {{ {} if (x > {}) break; {} }}".format, inner, INTEGERS, inner),
        st.builds("for (int v = 0; v < 2; v++) {{ if (y > {}) continue; {} }}".format, INTEGERS, inner),
    )


BODIES = st.lists(statements(2), min_size=2, max_size=6).map(" ".join)
