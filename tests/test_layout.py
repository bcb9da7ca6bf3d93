"""Each folder of code has a folder of tests of the same path, and no module imports from a module of tests."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = ("metafork", "evaluators", "strategies", "comprehensive")
# In strings as well: some tests start a process with a program of theirs.
IMPORT_OF_A_TEST = re.compile(r"\bfrom [\w.]*\btest_\w+ import\b|\bimport [\w., ]*\btest_\w+")


def modules(*folders):
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def test_each_folder_of_code_has_tests_in_a_folder_of_the_same_path():
    folders = {path.parent.relative_to(ROOT) for path in modules(*CODE) if path.name != "__init__.py"}
    assert len(folders) > 40
    bare = {folder.as_posix() for folder in folders if not any((ROOT / "tests" / folder).glob("test_*.py"))}
    assert bare == set()


def test_no_module_has_over_500_lines():
    long = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in modules(*CODE)}
    assert {path.name: count for path, count in long.items() if count > 500} == {}


def test_nothing_is_imported_by_a_name_that_users_may_have(tmp_path):
    """A wheel owns the name ``metafork`` alone, and what lies beside a script may be called as our folders are."""
    own = re.compile(r"^\s*(?:from|import) (?:strategies|evaluators|comprehensive)\b", re.MULTILINE)
    assert [path for path in modules(*CODE, "tests", "bench") if own.search(path.read_text(encoding="utf-8"))] == []
    for name in CODE[1:]:
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('this is a file of the user')\n")
    script = tmp_path / "script.py"
    script.write_text(f"import metafork\nmetafork.optimize({str(ROOT / 'examples' / 'smooth.mf')!r})\n")
    subprocess.run([sys.executable, script], cwd=tmp_path, check=True)


def test_no_module_imports_from_a_module_of_tests():
    found = {
        path.relative_to(ROOT).as_posix(): imports
        for path in modules(*CODE, "tests", "bench", "docs", "examples")
        if (imports := IMPORT_OF_A_TEST.findall(path.read_text(encoding="utf-8")))
    }
    assert found == {}
