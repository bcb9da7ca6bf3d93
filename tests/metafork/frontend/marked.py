"""Sources with the expected places written into them: ``«`` and ``»`` stand around the text of a diagnostic's span."""

from metafork.frontend import parse
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source


def unmark(marked):
    text, places, opened = "", [], []
    for letter in marked:
        if letter == "«":
            opened.append(len(text))
        elif letter == "»":
            places.append((opened.pop(), len(text)))
        else:
            text += letter
    assert not opened
    return text, sorted(places)


def position(text, offset):
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1


def diagnostics_of(text, name="test.mf", **options):
    try:
        parse(Source(name, text), **options)
    except DiagnosticsError as error:
        return error.diagnostics
    return ()


def assert_refused(marked, *codes, **options):
    """The codes are reported at the marked places, in the order of the text, and nothing else is."""
    text, places = unmark(marked)
    found = diagnostics_of(text, **options)
    seen = [(one.code, text[one.span.start : one.span.end], one.message) for one in found]
    assert [one.code for one in found] == list(codes), seen
    assert [(one.span.start, one.span.end) for one in found] == places, seen
    for one, (start, end) in zip(found, places, strict=True):
        assert (one.span.line, one.span.column) == position(text, start)
        assert (one.span.end_line, one.span.end_column) == position(text, end)
        assert one.message
        assert one.reason
        assert one.way_out
    return found


def thread(code, declarations=""):
    """A function whose threads run the given code."""
    return (
        "void f(int n, int m, float alpha, float a[n], float b[n][m], int idx[n])\n{\n"
        f"{declarations}"
        "  meta_schedule {\n    meta_for (int i = 0; i < n; i++)\n      meta_for (int j = 0; j < m; j++) {\n"
        f"{code}\n"
        "      }\n  }\n}\n"
    )


def loops(variables):
    """The heads of ``meta_for``s over n."""
    return " ".join(f"meta_for (int {one} = 0; {one} < n; {one}++)" for one in variables)


def small(code):
    """A function with one array whose schedule is the given code."""
    return "void f(int n, int a[n])\n{\n  meta_schedule {\n    " + code + "\n  }\n}\n"


def block(code):
    """A function whose blocks run the given code at block level."""
    return (
        "void f(int n, int m, float alpha, float a[n], float b[n][m], int idx[n])\n{\n"
        "  meta_schedule {\n    meta_for (int i = 0; i < n; i++) {\n"
        f"{code}\n"
        "    }\n  }\n}\n"
    )


def program_of(text, name="test.mf", number=0):
    return parse(Source(name, text)).schedules[number].program
