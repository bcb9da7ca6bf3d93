"""Random functions that call others, end iterations early, loop with the test at the end, have arrays of threads, wrap
indices at borders, read structures and tables, and add up by atomic updates and reductions."""

import re

from tests.random_programs.generator import FLOATING, INTEGER, Generator


class ConstructGenerator(Generator):
    """Functions of the plain kind in which values come from functions of the file, and loops of every form."""

    floating_sums = False

    def __init__(self, seed: int, name: str) -> None:
        super().__init__(seed, name)
        self.functions: list[str] = []
        self.reductions: list[str] = []

    def function(self, floating: bool) -> str:
        """Write a function of a value and a small integer, and return its name."""
        r = self.random
        kind = r.choice(("float", "double")) if floating else r.choice(("int", "long", "short"))
        name = f"{self.name}_g{len(self.functions)}"
        inner = "x"
        callable_ = [one for one in self.functions if not one.startswith(("struct", "static const"))]
        if callable_ and r.random() < 0.4:
            inner = f"{r.choice(callable_).split('(')[0].split()[-1]}(x, k + 1)"
        bodies = (
            f"return {inner} + k;",
            f"if (k < 2) return {inner} + 1; if (k == 2) return k; return 2 * x;",
            f"for (int l = 0; l < 3; l++) {{ if (l == (k & 3)) return {inner}; x += l; }} return x + 1;",
            f"{kind} s = {inner}; int l = 0; do {{ l++; if (l == k) continue; s += l; }} while (l < 3); return s;",
            "for (int l = 0; l < 2; l++) for (int i = 0; i < 2; i++) { if (i + l == k) return x + i; x += 1; } "
            f"x += {inner}; return x;",
            f"int most; most = k; {kind} s = x; if (most > 1) {{ s = {inner}; if (k == 3) return s; }} return s - 1;",
            f"return k > 1 && {inner} > 2 ? x : {inner} + 1;",
        )
        self.functions.append(f"static {kind} {name}({kind} x, int k) {{ {r.choice(bodies)} }}")
        return name

    def read(self, floating: bool) -> str:
        r = self.random
        if r.random() < 0.1:
            return self.of_structure(floating) if r.random() < 0.4 else self.of_several_types(floating)
        if r.random() < 0.1:
            return self.of_table(floating)
        if r.random() > 0.15:
            return super().read(floating)
        element = r.choice(FLOATING if floating else INTEGER)
        name = self.array("a", element, [f"N{axis}" for axis in range(self.rank)], const=True)
        parts = []
        for _ in range(r.randint(1, 3)):
            indices = "".join(
                f"[{self.wrapped(axis) if r.random() < 0.7 else f'p{axis}'}]" for axis in range(self.rank)
            )
            parts.append(self.masked(name + indices, element))
        return f"({' + '.join(parts)})"

    def of_structure(self, floating: bool) -> str:
        """A member of an element of an array of structures, perhaps of its neighbour's."""
        r = self.random
        element = r.choice(FLOATING if floating else INTEGER)
        tag = f"{self.name}_s{len(self.functions)}"
        members = "xyzw"[: r.randint(1, 4)]
        self.functions.append(f"struct {tag} {{ {element} {', '.join(members)}; }};")
        name = self.array("a", f"struct {tag}", [f"N{axis} + 1" for axis in range(self.rank)], const=True)
        at = "".join(f"[p{axis}{r.choice(('', ' + 1'))}]" for axis in range(self.rank))
        parts = [self.masked(f"{name}{at}.{r.choice(members)}", element) for _ in range(r.randint(1, 3))]
        return f"({' + '.join(parts)})"

    def of_several_types(self, floating: bool) -> str:
        """Members of several types, some of them arrays, of an element of an array of structures.

        Floating-point members are of one type and come first, so that what fills the array fills them with numbers.
        """
        r = self.random
        tag = f"{self.name}_s{len(self.functions)}"
        first = [r.choice(FLOATING)] * r.randint(1, 2) if floating or r.random() < 0.5 else []
        types = [*first, *(r.choice(INTEGER) for _ in range(r.randint(1, 3)))]
        sizes = [r.choice((0, 0, 2, 3)) for _ in types]
        members = "".join(
            f" {kind} m{at}{f'[{size}]' if size else ''};"
            for at, (kind, size) in enumerate(zip(types, sizes, strict=True))
        )
        self.functions.append(f"struct {tag} {{{members} }};")
        name = self.array("a", f"struct {tag}", [f"N{axis} + 1" for axis in range(self.rank)], const=True)
        self.cacheable.remove(name)
        usable = [at for at, kind in enumerate(types) if (kind in FLOATING) == floating]
        parts = []
        for _ in range(r.randint(1, 3)):
            at = "".join(f"[p{axis}{r.choice(('', ' + 1'))}]" for axis in range(self.rank))
            member = r.choice(usable)
            size = sizes[member]
            place = f"[{r.choice(('0', f'u0 % {size}', f'{size} - 1'))}]" if size else ""
            parts.append(self.masked(f"{name}{at}.m{member}{place}", types[member]))
        return f"({' + '.join(parts)})"

    def of_table(self, floating: bool) -> str:
        """An element of a constant table of the file, which all threads read together, or each for itself."""
        r = self.random
        element = r.choice(FLOATING if floating else INTEGER)
        name, size = f"{self.name}_t{len(self.functions)}", r.randint(2, 9)
        numbers = [
            r.choice((f"{r.randint(0, 99)}", f"{r.randint(1, 99)} / {2 ** r.randint(0, 3)}.0f")) for _ in range(size)
        ]
        given = numbers if floating else [str(r.randint(0, 60)) for _ in range(size)]
        values = ", ".join(given[: r.randint(1, size)])
        if r.random() < 0.3:
            values += f", [{size - 1}] = {given[0]}"
        self.functions.append(f"static const {element} {name}[{size}] = {{{values}}};")
        index = r.choice((f"g0 % {size}", f"g{self.rank - 1} % {size}", "1", f"u0 % {size}", f"p0 % {size}"))
        return self.masked(f"{name}[{index}]", element)

    def wrapped(self, axis: int) -> str:
        """An index that wraps at the border, of any form."""
        p, n = f"p{axis}", f"N{axis}"
        forms = (
            f"({p} + 1) % {n}", f"({p} + {n} - 1) % {n}", f"({p} - 2 + 2 * {n}) % {n}", f"({p} + 3u) % {n}",
            f"{p} == {n} - 1 ? 0 : {p} + 1", f"{p} > 0 ? {p} - 1 : {n} - 1", f"{p} < {n} - 1 ? {p} + 1 : 0",
        )  # fmt: skip
        return self.random.choice(forms)

    def value(self, floating: bool, depth: int = 2, more: tuple[str, ...] = ()) -> tuple[list[str], str]:
        before, text = super().value(floating, depth, more)
        r = self.random
        if more and not floating:
            return before, text  # what is given may be floating all the same
        if r.random() < 0.3:
            name = self.function(floating)
            axis = r.randrange(self.rank)
            given = text if floating else f"({text} & 255)"
            called = f"{name}({given}, {r.choice((f'u{axis} & 3', f'g{axis} % 4', '1', '2'))})"
            text = called if floating else f"({called} & 127)"
            if r.random() < 0.2:
                text = f"({self.condition()} || {text} > 3 ? {text} : 1)"
        if r.random() < 0.1:
            name, kind = self.fresh("w"), "double" if floating else "int"
            loop = f"do {{ {name} = {name} + 2; }} while (-9 < {name} && {name} < 7);"  # however small it is
            before = [*before, f"{kind} {name} = {text};", loop]
            text = name if floating else f"({name} & 255)"
        if r.random() < 0.25:
            before, text = self.through_own_array(before, text, floating)
        return before, text

    def through_own_array(self, before: list[str], text: str, floating: bool) -> tuple[list[str], str]:
        """Let a value go through an array of the thread, with indices that are numbers and others."""
        r = self.random
        name, size = self.fresh("o"), r.randint(2, 5)
        kind = r.choice(("float", "double")) if floating else r.choice(("int", "long", "short"))
        part = text if floating else f"(({text}) & 127)"
        lines = [*before, f"{kind} {name}[{size}] = {{{part}, 3}};"]
        steps = (
            f"for (int l = 0; l < {size}; l++) {name}[l] = {name}[l] * 2 + l;",
            f"for (int l = {size} - 1; l > 0; l--) {name}[l] = {name}[l - 1] + 1;",
            f"{name}[p0 % {size}] = u0 & 3;",
            f"if ({self.condition()}) {name}[1] = {name}[0] - 2; else {name}[0] += 1;",
            f"for (int l = 0; l < {size}; l++) {{ if (l == u0) break; {name}[l] -= {name}[{size - 1}]; }}",
            f"for (int k1 = 0; k1 < 2; k1++) for (int l = 0; l + k1 < {size}; l++) {name}[l] += {name}[l + k1];",
        )
        lines += [r.choice(steps) for _ in range(r.randint(1, 3))]
        read = f"{name}[{r.choice(('0', '1', f'p0 % {size}', f'{size} - 1 - u0 % {size}'))}]"
        return lines, read if floating else f"({read} & 127)"

    def statements(self, more: tuple[str, ...] = (), accumulate: bool = False) -> list[str]:
        lines = super().statements(more, accumulate)
        r = self.random
        if r.random() < 0.4:
            before, value = self.value(False, 1)
            op = r.choice(("+", "-", "|", "^", "&", "max", "min"))
            reduced = r.random() < 0.5
            floating = reduced and self.floating_sums and r.random() < 0.7
            op = r.choice(("+", "-", "*", "max", "min")) if floating else op
            element = r.choice(FLOATING if floating else INTEGER)
            name = self.array("r" if reduced else "h", element, ["1" if reduced else "8"], const=False)
            target = f"{name}[0]" if reduced else f"{name}[({r.choice(('p0', 'g0', value))}) & 7]"
            part = self.fresh("q")
            kind, given = (element, f"(({value}) & 15) / 7.0f") if floating else ("unsigned char", f"({value}) & 15")
            before = [*before, f"{kind} {part} = {given};"]
            update = f"{target} {op}= {part};"
            if op in ("max", "min"):
                target = f"{name}[{'0' if reduced else f'{part} & 7'}]"
                update = f"{target} = {target} {'<' if op == 'max' else '>'} {part} ? {part} : {target};"
            if reduced:
                self.reductions.append(f"meta_reduction({'+' if op == '-' else op}: {name})")
            write = update if reduced else f"meta_atomic {update}"
            lines += [*before, write if r.random() < 0.7 else f"if ({self.condition()}) {write}"]
        return lines

    def phase(self, body: list[str], indent: int, *, plain: bool = False, idle: int = 0) -> list[str]:
        r = self.random
        if not plain and self.granular is None and r.random() < 0.4:
            body = [*body[:-1], f"if ({self.condition()}) continue;", body[-1]] if not _open(body) else body
            if r.random() < 0.5:
                body = [f"if (p0 % 5 == 3) {{ if ({self.condition()}) continue; }}", *body]
        return super().phase(body, indent, plain=plain, idle=idle)

    def text(self) -> str:
        text = super().text()
        clauses = " ".join(self.reductions)
        text = re.sub(r"\n  meta_for ", f"\n  {clauses} meta_for ", text, count=1) if clauses else text
        if self.random.random() < 0.2:
            text = text.replace("meta_schedule", f"meta_schedule meta_grid({self.rank})", 1)
        return "".join(f"{one}\n" for one in self.functions) + text


class SumGenerator(ConstructGenerator):
    """Functions of that kind in which floating-point numbers are added up."""

    floating_sums = True


def _open(body: list[str]) -> bool:
    """Whether the last line of a body belongs to what stands before it."""
    return body[-1].startswith((" ", "}")) or (len(body) > 1 and body[-2].startswith("for") and "{" not in body[-2])
