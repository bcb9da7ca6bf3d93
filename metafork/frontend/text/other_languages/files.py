"""Files without a schedule: Python, CUDA, OpenMP, OpenACC, and ``meta_schedule`` as a pragma, with the loop marked.

The help shows the user's own loop as a schedule, in its function where that is short, with a block size that the
caller chooses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from metafork.frontend.text.definitions import FunctionText
from metafork.frontend.text.other_languages.advice import Advice
from metafork.frontend.text.other_languages.heads import with_block_size
from metafork.frontend.text.preprocessing.branches import Directive
from metafork.frontend.text.tokens import LineMap, Token
from metafork.ir.messages.source import Span

_PYTHON = re.compile(
    r"^(?:import \w[\w.]*(?: as \w+)?|from [\w.]+ import .*|@\w[\w.]*(?:\(.*\))?"
    r"|(?:async )?def \w+\(.*|class \w+.*:)\s*$",
    re.MULTILINE,
)
_MARKED = "loops that are marked with `meta_schedule` and `meta_for`"
_DIRECTIVES = {"omp": "OpenMP", "acc": "OpenACC"}
_INDEX = re.compile(
    r"\s*(?:const\s+)?(?:unsigned\s+|u?int32_t\s+|int\s+|long\s+|size_t\s+|auto\s+)+(\w+)\s*=\s*"
    r"(?:blockIdx\.x\s*\*\s*blockDim\.x\s*\+\s*threadIdx\.x|blockDim\.x\s*\*\s*blockIdx\.x\s*\+\s*threadIdx\.x"
    r"|threadIdx\.x\s*\+\s*blockIdx\.x\s*\*\s*blockDim\.x|threadIdx\.x\s*\+\s*blockDim\.x\s*\*\s*blockIdx\.x)\s*;\s*"
)
_EXAMPLE = ["meta_schedule meta_block(B) {", "  meta_for (int i = 0; i < n; i++)", "    x[i] = 2 * x[i];", "}"]
_LONGEST = 12
"""Most lines of a loop that are shown."""


def python_file(text: str) -> tuple[Span, Advice] | None:
    """Return the place of the first line that is Python, and what is said of such a file."""
    found = None if "meta_schedule" in text else _PYTHON.search(text)
    if found is None or re.search(r"^\s*#\s*(include|define|pragma)\b", text, re.MULTILINE):
        return None
    word = re.match(r"@?\w+", found[0])
    assert word is not None
    reason = f"metafork compiles {_MARKED}."
    way = "a first program is in `examples/smooth.mf`. `docs/tutorial.md` explains it line by line."
    span = LineMap(text).span(found.start(), found.start() + word.end())
    return span, Advice("this is a Python file, and metafork reads C", reason, way)


def keyword_pragma(directive: Directive) -> str | None:
    """Return the word of the language that stands in a pragma, with what follows it; ``None`` for another directive."""
    found = re.match(r"\s*(?:metafork\s+)?(meta_(?:schedule|for)\b.*)", directive.rest, re.DOTALL)
    return " ".join(found[1].split()) if directive.word == "pragma" and found else None


def _lines(text: str, *, several: bool = False) -> list[str]:
    """Return the lines of a statement, or of several, of which the first is not indented."""
    first, _, rest = text.partition("\n")
    lines = rest.expandtabs(4).splitlines()
    last = next((line for line in reversed(lines) if line.strip()), "")
    margin = len(last) - len(last.lstrip()) if last.strip() == "}" and not several else None
    if margin is None:
        margin = max(
            min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0) - 2 * (not several), 0
        )
    return [first, *(line[min(margin, len(line) - len(line.lstrip())) :] for line in lines)]


class PlainFile(Struct, frozen=True):
    """A file in which no ``meta_schedule`` is a word of the language."""

    text: str
    tokens: Sequence[Token]
    partners: Mapping[int, int]
    functions: Sequence[FunctionText]
    directives: Sequence[Directive]

    def advice(self) -> tuple[Span, Advice] | None:
        """Return place and what is said of a file whose loops are marked otherwise; ``None`` where none is."""
        for directive in self.directives:
            if (written := keyword_pragma(directive)) is not None:
                return directive.span, self._of_keyword(directive, written)
        for token in self.tokens:
            if token.text in ("__global__", "__kernel"):
                return token.span, self._of_kernel(token)
        for directive in self.directives:
            language = _DIRECTIVES.get((directive.rest.split() or [""])[0]) if directive.word == "pragma" else None
            if language is not None:
                return directive.span, self._of_directive(directive, language)
        return None

    def _of_keyword(self, directive: Directive, written: str) -> Advice:
        word = written.split()[0]
        message = f"`{word}` is a keyword, not a pragma"
        reason = "C ignores this pragma, so the file has no schedule."
        way = "write the keyword in front of the loop, and `meta_for` in place of `for`:"
        clauses = written.removeprefix("meta_schedule").strip(" {") if word == "meta_schedule" else ""
        return Advice(message, reason, self._marked(way, directive, clauses))

    def _of_directive(self, directive: Directive, language: str) -> Advice:
        reason = f"metafork does not read {language}. It compiles {_MARKED}."
        found = re.search(r"\breduction\s*\(\s*([^:()]+?)\s*:\s*([^()]+?)\s*\)", directive.rest)
        result = f"meta_reduction({found[1]}: {found[2]}) " if found else ""
        copies = "; the copies are found from the accesses" if language == "OpenACC" else ""
        way = f"mark this loop instead, and make the block size a parameter{copies}:"
        return Advice("this file has no `meta_schedule`", reason, self._marked(way, directive, "", result))

    def _of_kernel(self, token: Token) -> Advice:
        language = "CUDA" if token.text == "__global__" else "OpenCL"
        reason = f"metafork writes {language}. It reads C with {_MARKED}: `docs/tutorial.md`."
        way = "write the loop that the kernel stands for; the grid and the index are generated:"
        function = next((one for one in self.functions if self._inside(one, token.span)), None)
        lines = None if function is None else self._of_index(function)
        if lines is None:
            lines = _EXAMPLE
        article = "a" if language == "CUDA" else "an"
        message = f"this is {article} {language} file, and metafork does not read {language}"
        return Advice(message, reason, "\n".join([way, *lines]))

    def _inside(self, function: FunctionText, span: Span) -> bool:
        return self.tokens[function.first].span.start <= span.start < self.tokens[function.close_brace].span.end

    # --- loops ------------------------------------------------------------------------------------------------

    def _marked(self, way: str, directive: Directive, clauses: str, result: str = "") -> str:
        """Return a help with the loop behind a directive as a schedule, in its function where it is all of that."""
        function = next((one for one in self.functions if self._inside(one, directive.span)), None)
        behind = [index for index, one in enumerate(self.tokens) if one.span.start > directive.span.start]
        last = len(self.tokens) if function is None else function.close_brace
        loop = next(
            (index for index in behind if index < last and self.tokens[index].text in ("for", "meta_for")), None
        )
        if loop is None or function is None or self.tokens[loop + 1].text != "(":
            return "\n".join([way, *_EXAMPLE])
        end = self._statement_end(loop)
        lines = _lines(self._between(loop, end))
        lines[0] = result + re.sub(r"^(meta_)?for\b", "meta_for", lines[0])
        if len(lines) > _LONGEST:
            lines = [lines[0], "  ..."]
        alone = loop == function.open_brace + 1 and end == function.close_brace
        block, head = self._with_block(function)
        if clauses:
            head = head if re.search(rf"\b{block}\b", clauses) else ""
        schedule = [f"meta_schedule {clauses or f'meta_block({block})'} {{", *(f"  {line}" for line in lines), "}"]
        if alone and len(lines) > 1 and head:
            return "\n".join([way, head, "{", *(f"  {line}" for line in schedule), "}"])
        return "\n".join([f"{way[:-1]}, `{head}`:" if head else way, *schedule])

    def _of_index(self, function: FunctionText) -> list[str] | None:
        """Return a kernel of one dimension as a function with a loop; ``None`` for another one."""
        body = self._between(function.open_brace + 1, function.close_brace).strip()
        found = _INDEX.match(body)
        if found is None:
            return None
        index, rest = found[1], body[found.end() :]
        inside = re.match(rf"if\s*\(\s*{index}\s*<\s*([^()]+?)\s*\)\s*", rest)
        outside = re.match(rf"if\s*\(\s*{index}\s*>=\s*([^()]+?)\s*\)\s*(return\s*;|\{{\s*return\s*;\s*\}})\s*", rest)
        limit = inside or outside
        statement = rest[limit.end() :].strip() if limit else ""
        single = statement.count(";") == 1 or (statement.startswith("{") and statement.find("}") == len(statement) - 1)
        if limit is None or (inside and not single) or re.search(r"\b(threadIdx|blockIdx|__\w+)\b", statement):
            return None
        lines = _lines(statement)
        if outside and not single:
            lines = ["{", *(f"  {line}" for line in _lines(statement, several=True)), "}"]
        block, head = self._with_block(function)
        head = re.sub(
            r"\b(__global__|__launch_bounds__\s*\([^()]*\)|extern \"C\")\s*", "", head or self._head(function)
        )
        loop = [f"meta_for (int {index} = 0; {index} < {limit[1]}; {index}++)"]
        loop = [f"{loop[0]} {{", *lines[1:]] if lines[0] == "{" else [*loop, *(f"  {line}" for line in lines)]
        return [head, "{", f"  meta_schedule meta_block({block}) {{", *(f"    {line}" for line in loop), "  }", "}"]

    def _head(self, function: FunctionText) -> str:
        return " ".join(self._between(function.first, function.close_paren + 1).split())

    def _with_block(self, function: FunctionText) -> tuple[str, str]:
        """Return the name of a block size, and the function's head with that parameter, empty where it has it."""
        words = {token.text for token in self.tokens[function.first : function.close_brace]}
        return with_block_size(self._head(function), words)

    def _between(self, first: int, behind: int) -> str:
        """Return the text of some tokens with what stands between them."""
        if first >= behind:
            return ""
        return self.text[self.tokens[first].span.start : self.tokens[behind - 1].span.end]

    def _statement_end(self, index: int) -> int:
        """Return the place behind a statement: a block, a loop or branch with its body, or up to a semicolon."""
        text = self.tokens[index].text
        if text == "{":
            return self.partners[index] + 1
        if text in ("for", "meta_for", "while", "if") and self.tokens[index + 1].text == "(":
            end = self._statement_end(self.partners[index + 1] + 1)
            return self._statement_end(end + 1) if text == "if" and self.tokens[end].text == "else" else end
        while index < len(self.tokens) - 1 and self.tokens[index].text != ";":
            index = self.partners.get(index, index) + 1 if self.tokens[index].text in ("(", "[", "{") else index + 1
        return index + 1
