import json
from pathlib import Path

import jsonschema
import pytest

from metafork.frontend.text.tokens import LineMap
from metafork.ir.messages.catalogue import CATALOGUE
from metafork.ir.messages.diagnostics import (
    Diagnostic,
    DiagnosticsError,
    Severity,
    render_json,
    render_sarif,
    render_text,
)
from metafork.ir.messages.examples import EXAMPLES

ROOT = Path(__file__).parents[4]
TEXT = "void f(int n)\n{\n\tint *p = &n; // 1\n  two(\n   lines);\n}\n"


def at(fragment):
    start = TEXT.index(fragment)
    return LineMap(TEXT).span(start, start + len(fragment))


def diagnostic(fragment, code="MF0201", severity=Severity.ERROR, related=()):
    return Diagnostic(code, severity, "a pointer", at(fragment), "x y.mf", "because", "do that", related)


def test_text():
    found = render_text([diagnostic("*p = &n", related=((at("int n"), "declared here"),))], {"x y.mf": TEXT})
    assert found == (
        "x y.mf:3:6: error[MF0201]: a pointer\n"
        "   3 | \tint *p = &n; // 1\n"
        "     | \t    ^~~~~~~\n"
        "     note: declared here (line 1)\n"
        "   1 | void f(int n)\n"
        "     |        ^~~~~\n"
        "     = reason: because\n"
        "     = help: do that\n"
    )


def test_text_of_several_lines_underlines_the_first():
    lines = render_text([diagnostic("two(\n   lines)")], {"x y.mf": TEXT}).splitlines()
    assert lines[1:3] == ["   4 |   two(", "     |   ^~~~"]


def test_text_without_source_and_in_order():
    found = render_text([diagnostic("two", "MF0206"), diagnostic("*p"), diagnostic("*p")], {})
    assert [line for line in found.splitlines() if "error" in line] == [
        "x y.mf:3:6: error[MF0201]: a pointer",
        "x y.mf:4:3: error[MF0206]: a pointer",
    ]


def test_an_empty_span_has_a_caret():
    span = LineMap(TEXT).span(len(TEXT), len(TEXT))
    one = Diagnostic("MF0010", Severity.WARNING, "nothing", span, "x")
    assert render_text([one], {"x": TEXT}) == "x:7:1: warning[MF0010]: nothing\n   7 | \n     | ^\n"


def test_color_and_control_characters():
    one = Diagnostic("MF0010", Severity.ERROR, "bad \x1b[31m", LineMap("\x07a").span(0, 1), "x")
    found = render_text([one], {"x": "\x07a"}, color=True)
    assert "\x1b[31m" in found.replace("bad \ufffd[31m", "")
    assert "\x07" not in found
    assert "bad \ufffd[31m" in found
    assert "\x1b" not in render_text([one], {"x": "\x07a"})


def test_json():
    found = json.loads(render_json([diagnostic("*p", related=((at("int n"), "here"),))]))
    assert found["format"] == "metafork-diagnostics"
    (one,) = found["diagnostics"]
    assert one["code"] == "MF0201"
    assert one["severity"] == "error"
    assert one["file"] == "x y.mf"
    span = one["span"]
    assert (span["line"], span["column"], span["end_line"], span["end_column"]) == (3, 6, 3, 8)
    assert TEXT[span["start"] : span["end"]] == "*p"
    assert one["related"][0]["message"] == "here"


SARIF = {
    "type": "object",
    "required": ["version", "runs", "$schema"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "required": ["tool", "results"],
                "properties": {
                    "tool": {"required": ["driver"], "properties": {"driver": {"required": ["name", "rules"]}}},
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "results": {
                        "type": "array",
                        "items": {
                            "required": ["ruleId", "message", "locations"],
                            "properties": {
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": {"required": ["text"]},
                                "ruleIndex": {"type": "integer", "minimum": 0},
                            },
                        },
                    },
                },
            },
        },
    },
}


def test_sarif():
    one = diagnostic("*p", related=((at("int n"), "here"),))
    log = json.loads(render_sarif([one, diagnostic("two", "MF0206", Severity.WARNING), diagnostic("lines")]))
    jsonschema.validate(log, SARIF)
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == ["MF0201", "MF0206"]
    assert [rules[result["ruleIndex"]] for result in run["results"]] == ["MF0201", "MF0206", "MF0201"]
    assert [result["level"] for result in run["results"]] == ["error", "warning", "error"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "x%20y.mf"
    assert place["region"] == {
        "startLine": 3,
        "startColumn": 6,
        "endLine": 3,
        "endColumn": 8,
        "charOffset": TEXT.index("*p"),
        "charLength": 2,
    }
    assert run["results"][0]["relatedLocations"][0]["message"]["text"] == "here"


def test_nothing_to_say():
    assert render_text([], {}) == ""
    assert json.loads(render_json([]))["diagnostics"] == []
    assert json.loads(render_sarif([]))["runs"][0]["results"] == []


def test_the_exception_sorts():
    error = DiagnosticsError([diagnostic("two"), diagnostic("*p")])
    assert [one.span.line for one in error.diagnostics] == [3, 4]
    assert "MF0201" in str(error)


@pytest.mark.parametrize("code", sorted(CATALOGUE))
def test_every_code_is_explained(code):
    entry = CATALOGUE[code]
    assert entry.reason.endswith(".")
    assert entry.way_out.endswith(".")
    table = (ROOT / "docs" / "diagnostics.md").read_text(encoding="utf-8")
    rows = [line for line in table.splitlines() if line.startswith(f"| {code} ")]
    assert len(rows) == 1
    for cell in (entry.title, EXAMPLES[code], entry.reason, entry.way_out):
        assert cell.replace("|", "\\|") in rows[0]
