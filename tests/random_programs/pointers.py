"""Random functions with pointers for arrays, flat indices that are clamped or wrap, and counters inside expressions."""

import re

from metafork import DiagnosticsError
from metafork.comprehensive.reading import parse
from metafork.ir.messages.source import Source
from tests.random_programs.constructs import ConstructGenerator


class PointerGenerator(ConstructGenerator):
    """Functions of that kind in which arrays are pointers.

    Of some a pragma says the extent; of others their accesses do, or nobody knows it.
    """

    def wrapped(self, axis: int) -> str:
        r = self.random
        if r.random() < 0.5:
            return super().wrapped(axis)
        p, n = f"p{axis}", f"N{axis}"
        forms = (
            f"{p} > 0 ? {p} - 1 : 0", f"{p} == 0 ? {p} : {p} - 1", f"{p} != {n} - 1 ? {p} + 1 : {p}",
            f"{p} + 2 < {n} ? {p} + 2 : {n} - 1", f"{p} - 1 < 0 ? 0 : {p} - 1 > {n} - 1 ? {n} - 1 : {p} - 1",
        )  # fmt: skip
        return r.choice(forms)

    def value(self, floating: bool, depth: int = 2, more: tuple[str, ...] = ()) -> tuple[list[str], str]:
        before, text = super().value(floating, depth, more)
        if (more and not floating) or self.random.random() > 0.15:
            return before, text
        return self.counted(before, text, floating)

    def counted(self, before: list[str], text: str, floating: bool) -> tuple[list[str], str]:
        """Let a value go through an array of the thread, with a counter that expressions move."""
        r = self.random
        name, at = self.fresh("o"), self.fresh("c")
        kind = "double" if floating else "int"
        part = text if floating else f"(({text}) & 127)"
        lines = [*before, f"{kind} {name}[4] = {{1, 2}};", f"int {at} = {r.choice(('0', '1', 'u0 & 1'))};"]
        steps = (
            f"for (int l = 0; l < 2; l++) {name}[{at}++ & 3] = {part} - l;",
            f"while (++{at} < 4) {name}[{at} & 3] += {at};",
            f"do {{ if ({at} == 2) continue; {name}[0] += 1; }} while ({at}-- > 1);",
            f"for (int l = 0, h = 5; l < h; l++, h--) {{ if (h == 4) continue; {name}[l] -= h; }}",
            f"{name}[({at} -= 1) & 3] += {part};",
            f"if ({self.condition()} && ++{at} > 2) {name}[2] = {name}[1] = {at};",
        )
        lines += [r.choice(steps) for _ in range(r.randint(1, 3))]
        read = f"({name}[0] + {name}[({at}++ + 8) & 3] * 2)"
        return lines, read if floating else f"({read} & 127)"

    def text(self) -> str:
        text = super().text()
        extents: dict[str, str] = {}
        for declared in self.arrays:
            name, sizes = re.search(r"(\w+)((?:\[[^\]]*\])+)$", declared).groups()
            extents[name] = " * ".join(f"({size})" for size in parts_of(sizes))
            pointer = f"{declared[: -len(name + sizes)]}*{self.random.choice(('', 'restrict '))}{name}"
            text = text.replace(declared, pointer, 1)
            text = flattened(text, name, parts_of(sizes))
        promised = {name for name in extents if self.random.random() < 0.5}
        while True:
            listed = ", ".join(f"{name}[{extents[name]}]" for name in extents if name in promised)
            found = text.replace("{\n", f"{{\n#pragma metafork extents({listed})\n", 1) if listed else text
            try:
                parse(Source("f.mf", "#include <assert.h>\n#include <math.h>\n" + found))
            except DiagnosticsError as error:
                missing = {name for name in extents for one in error.diagnostics if f"`{name}`" in one.message}
                if not missing - promised:
                    return found  # the fault is what is looked for
                promised |= missing
            else:
                return found


def parts_of(text: str) -> list[str]:
    """Return what stands in brackets that follow each other."""
    parts: list[str] = []
    depth = 0
    for letter in text:
        depth -= letter == "]"
        if depth:
            parts[-1] += letter
        elif letter == "[":
            parts.append("")
        elif letter != "]":
            break
        depth += letter == "["
    return parts


def flattened(text: str, name: str, sizes: list[str]) -> str:
    """Return a text in which the elements of an array are named by one index."""
    done = ""
    while (found := re.search(rf"\b{name}\[", text)) is not None:
        done, text = done + text[: found.start()] + name, text[found.end() - 1 :]
        indices = parts_of(text)
        text = text[sum(len(index) + 2 for index in indices) :]
        index = flattened(indices[0], name, sizes)
        for size, own in zip(sizes[1:], indices[1:], strict=True):
            index = f"({index}) * ({size}) + ({flattened(own, name, sizes)})"
        done += f"[{index}]"
    return done + text
