"""Each folder of code has a folder of tests of the same path, and no module imports from a module of tests."""

import re
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


def test_no_module_imports_from_a_module_of_tests():
    found = {
        path.relative_to(ROOT).as_posix(): imports
        for path in modules(*CODE, "tests", "bench", "docs", "examples")
        if (imports := IMPORT_OF_A_TEST.findall(path.read_text(encoding="utf-8")))
    }
    assert found == {}
