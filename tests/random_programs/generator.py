"""MetaFork functions at random, valid by construction: no race, no index outside of its array, nothing undefined in C.

A thread (with its granularity iteration) owns the element of each output at its own coordinates and writes no other in
a phase; what other threads wrote is read only after a phase has ended, and inside the block.  Integers stay small:
what is read is masked, products have few factors.
"""

import re
from random import Random

FLOATING = ("float", "float", "double")
INTEGER = ("int", "int", "short", "unsigned char", "long long", "unsigned")


class Generator:
    """One function; ``text()`` is it.  Equal seeds give equal functions."""

    def __init__(self, seed: int, name: str) -> None:
        self.random = Random(seed)
        self.name = name
        r = self.random
        self.rank = r.choice((1, 1, 1, 2, 2, 3))
        self.index_type = r.choice(("int", "int", "int", "int", "long"))
        self.uses_m = False
        self.arrays: list[str] = []
        self.taken = 0
        self.forms = [r.choice(("floor", "floor", "ceiling", "halo")) for _ in range(self.rank)]
        self.granular = r.randrange(self.rank) if r.random() < 0.5 else None
        self.granular_form = r.choice(("blocked", "folded", "inner"))
        self.values: list[str] = []
        self.cacheable: list[str] = []

    # ---- names and coordinates ----

    def kind(self, name: str) -> str:
        """The type of an index variable or of a size."""
        return "int" if name == "k" else self.index_type

    def fresh(self, stem: str) -> str:
        self.taken += 1
        return f"{stem}{self.taken}"

    def span(self, axis: int) -> str:
        return f"(s * B{axis})" if self.granular == axis else f"B{axis}"

    def extent(self, axis: int) -> str:
        """The definition of the grid's extent in one dimension."""
        match self.forms[axis]:
            case "floor":
                return f"N{axis} / {self.span(axis)}"
            case "ceiling":
                return f"(N{axis} + {self.span(axis)} - 1) / {self.span(axis)}"
            case _:
                return f"(N{axis} - 2) / {self.span(axis)}"

    def coordinate(self, axis: int) -> str:
        shift = " + 1" if self.forms[axis] == "halo" else ""
        g, u, b = f"g{axis}", f"u{axis}", f"B{axis}"
        if self.granular != axis:
            return self.random.choice((f"{g} * {b} + {u}", f"{u} + {b} * {g}")) + shift
        match self.granular_form:
            case "blocked":
                return f"{g} * s * {b} + k * {b} + {u}{shift}"
            case "folded":
                return f"({g} * s + k) * {b} + {u}{shift}"
            case _:
                return f"({g} * {b} + {u}) * s + k{shift}"

    def guards(self) -> list[str]:
        return [f"p{axis} < N{axis}" for axis in range(self.rank) if self.forms[axis] == "ceiling"]

    # ---- arrays ----

    def array(self, stem: str, element: str, extents: list[str], const: bool) -> str:
        name = self.fresh(stem)
        qualifier = "const " if const and self.random.random() < 0.7 else ""
        self.arrays.append(f"{qualifier}{element} {name}{''.join(f'[{extent}]' for extent in extents)}")
        self.cacheable.append(name)
        return name

    def output(self, floating: bool) -> tuple[str, str]:
        """A new output and the element of it that a thread owns."""
        r = self.random
        element = r.choice(FLOATING if floating else INTEGER)
        sizes = [f"N{axis}" for axis in range(self.rank)]
        points = [f"p{axis}" for axis in range(self.rank)]
        if self.rank == 1 and r.random() < 0.2:
            name = self.array("w", element, ["2 * N0 + 1"], const=False)
            return name, f"{name}[{r.choice(('2 * p0', '2 * p0 + 1'))}]"
        order = list(range(self.rank))
        if r.random() < 0.25:
            r.shuffle(order)
        if self.rank > 1 and r.random() < 0.35:
            name = self.array("w", element, [" * ".join(sizes[axis] for axis in order)], const=False)
            index = points[order[0]]
            for axis in order[1:]:
                index = f"({index}) * {sizes[axis]} + {points[axis]}"
            return name, f"{name}[{index}]"
        name = self.array("w", element, [sizes[axis] for axis in order], const=False)
        return name, name + "".join(f"[{points[axis]}]" for axis in order)

    def read(self, floating: bool) -> str:
        """An expression that reads something that nobody writes."""
        r = self.random
        element = r.choice(FLOATING if floating and r.random() < 0.7 else INTEGER)
        axis = r.randrange(self.rank)
        kind = r.choice(
            ("same", "same", "shifted", "shifted", "window", "strided", "thread", "block", "few", "back", "m")
        )
        match kind:
            case "same":
                name = self.array("a", element, [f"N{a}" for a in range(self.rank)], const=True)
                text = name + "".join(f"[p{a}]" for a in range(self.rank))
            case "shifted":
                name = self.array("a", element, [f"N{a} + 4" for a in range(self.rank)], const=True)
                parts = [
                    name + "".join(f"[p{a} + {r.randint(0, 4)}]" for a in range(self.rank))
                    for _ in range(r.randint(1, 3))
                ]
                return "(" + " + ".join(self.masked(part, element) for part in parts) + ")"
            case "window":
                name = self.array("a", element, [f"N{axis} + 3"], const=True)
                return f"@loop:z:3:{self.masked(f'{name}[p{axis} + z]', element)}"
            case "strided":
                name = self.array("a", element, [f"3 * N{axis} + 3"], const=True)
                text = f"{name}[3 * p{axis} + {r.randint(0, 2)}]"
            case "thread":
                name = self.array("a", element, [f"B{axis} + 2"], const=True)
                text = f"{name}[{r.choice((f'u{axis}', f'B{axis} - u{axis}', f'u{axis} + 2'))}]"
            case "block":
                name = self.array("a", element, [f"N{axis} + 1"], const=True)
                text = f"{name}[g{axis}]"
            case "few":
                name = self.array("a", element, ["4"], const=True)
                text = f"{name}[{r.choice(('0', '3', 'p0 % 4'))}]"
            case "back":
                name = self.array("a", element, [f"N{axis}"], const=True)
                inside = self.masked(f"{name}[p{axis} - 1]", element)
                return f"(p{axis} > 0 ? {inside} : 2)"
            case _:
                self.uses_m = True
                name = self.array("a", element, [f"N{axis} + m"], const=True)
                return f"@loop:z:m:{self.masked(f'{name}[p{axis} + z]', element)}"
        return self.masked(text, element)

    def masked(self, text: str, element: str) -> str:
        return text if element in FLOATING else f"({text} & 63)"

    def value(self, floating: bool, depth: int = 2, more: tuple[str, ...] = ()) -> tuple[list[str], str]:
        """Statements that come first, and an expression."""
        r = self.random
        if depth == 0 or r.random() < 0.25:
            if more and r.random() < 0.6:
                return [], r.choice(more)
            if r.random() < 0.2:
                return [], r.choice(("0.5f", "3.0f", "2")) if floating else str(r.randint(1, 9))
            if r.random() < 0.1:
                name = self.fresh("v")
                self.values.append(f"{'float' if floating else 'int'} {name}")
                return [], name if floating else f"({name} & 7)"
            text = self.read(floating)
            if not text.startswith("@loop:"):
                return [], text
            _, variable, trips, summand = text.split(":", 3)
            total = self.fresh("t")
            lines = [f"{'float' if floating else 'int'} {total} = 0;"]
            lines += [f"for (int {variable} = 0; {variable} < {trips}; {variable}++)", f"  {total} += {summand};"]
            return lines, total if floating else f"({total} & 127)"
        if r.random() < 0.12:
            before, inner = self.value(floating, depth - 1, more)
            other, second = self.value(floating, depth - 1, more)
            return before + other, f"({self.condition()} ? {inner} : {second})"
        before, first = self.value(floating, depth - 1, more)
        others, second = self.value(floating, depth - 1, more)
        op = r.choice("++-*")
        if floating and r.random() < 0.1:
            return before + others, f"sqrtf((float)({first} * {first}))"
        return before + others, f"({first} {op} {second})"

    def condition(self) -> str:
        r = self.random
        axis = r.randrange(self.rank)
        choices = [f"p{axis} % 3 != 1", f"u{axis} < 2", f"p{axis} < N{axis} - 2", f"g{axis} % 2 == 0", f"B{axis} > 2"]
        return r.choice(choices)

    # ---- code ----

    def phase(self, body: list[str], indent: int, *, plain: bool = False, idle: int = 0) -> list[str]:
        """Thread loops around a body; ``plain`` leaves out the granularity loop and the coordinates.

        There are ``idle`` rows of threads more that do nothing.
        """
        guards = [*self.guards(), *(["u0 < B0"] if idle else [])]
        lines: list[str] = []
        for axis in range(self.rank):
            kind = self.kind(f"u{axis}")
            extent = f"B{axis} + {idle}" if idle and axis == 0 else f"B{axis}"
            lines.append("  " * indent + f"meta_for ({kind} u{axis} = 0; u{axis} < {extent}; u{axis}++)")
            indent += 1
        lines[-1] += " {"
        inner: list[str] = []
        if not plain:
            inner += [f"{self.kind(f'p{axis}')} p{axis} = {self.coordinate(axis)};" for axis in range(self.rank)]
            if guards:
                inner += [f"if ({' && '.join(guards)}) {{", *(f"  {line}" for line in body), "}"]
            else:
                inner += body
            if self.granular is not None:
                loop = f"for ({self.kind('k')} k = 0; k < s; k++) {{"
                inner = [loop, *(f"  {line}" for line in inner), "}"]
        else:
            inner = body
        lines += ["  " * indent + line for line in inner]
        return [*lines, "  " * (indent - 1) + "}"]

    def statements(self, more: tuple[str, ...] = (), accumulate: bool = False) -> list[str]:
        """Writes to one or two outputs that the thread owns."""
        r = self.random
        lines: list[str] = []
        for _ in range(r.choice((1, 1, 2))):
            floating = r.random() < 0.6
            before, value = self.value(floating, more=more)
            _, target = self.output(floating)
            op = "+=" if accumulate or r.random() < 0.3 else "="
            write = [f"{target} {op} {value};"]
            if r.random() < 0.2:
                again, second = self.value(floating, 1, more)
                write = [*write, *again, f"{target} += {second};"]
            if r.random() < 0.3:
                write = [f"if ({self.condition()}) {{", *(f"  {line}" for line in write), "}"]
                if r.random() < 0.3:
                    write[-1] = "} else {"
                    write += [f"  {target} = 1;", "}"]
            if r.random() < 0.12:
                write = [f"for (int e = 0; e < 3; e++) {{ {target} += e;", "  if (p0 % 4 == e) break;", "}", *write]
            lines += before + write
        return lines

    def nest(self) -> list[str]:
        """The block-level code."""
        r = self.random
        shape = r.choice(("one", "one", "one", "loop", "loop", "tile", "tile", "through", "if"))
        if shape == "through" and (self.granular is not None or self.forms[0] != "floor" or self.rank > 1):
            shape = "loop"
        match shape:
            case "one":
                return self.phase(self.statements(), 2)
            case "loop":
                self.uses_m = True
                element = r.choice(FLOATING)
                tile = self.array("a", element, ["m * B0 + N0"], const=True)
                more = (f"{tile}[{r.choice(('t * B0 + u0', 't + p0', 't', 't * B0 + B0 - 1 - u0'))}]",)
                lines = self.phase(self.statements(more, accumulate=True), 3)
                if r.random() < 0.3:
                    lines += self.phase(self.statements(accumulate=True), 3, idle=r.choice((0, 0, 1, 3)))
                head = r.choice(("int t = 0; t < m; t++", "int t = 0; t < m; t += 2", "int t = 1; t < m; t++"))
                before = self.phase(self.statements(), 2) if r.random() < 0.25 else []
                return [*before, f"    for ({head}) {{", *lines, "    }"]
            case "tile":
                return self.tile()
            case "through":
                element = r.choice(FLOATING)
                name = self.array("w", element, ["N0"], const=False)
                before, value = self.value(True, 1)
                lines = self.phase([*before, f"{name}[p0] = {value};"], 2)
                there = r.choice(("g0 * B0 + B0 - 1 - u0", "g0 * B0", "p0"))
                return lines + self.phase(self.statements((f"{name}[{there}]",)), 2)
            case _:
                test = r.choice(("g0 % 2 == 0", "N0 > 9", "B0 > 2", "g0 < 1"))
                lines = [f"    if ({test}) {{", *self.phase(self.statements(), 3), "    }"]
                if r.random() < 0.6:
                    lines[-1] = "    } else {"
                    lines += [*self.phase(self.statements(), 3), "    }"]
                return lines

    def tile(self) -> list[str]:
        """An array of the block: filled, perhaps stirred, then read."""
        r = self.random
        element = r.choice((*FLOATING, *INTEGER))
        name = self.fresh("tile")
        source = self.array("a", element, ["N0 + B0"], const=True)
        own = "".join(f"[u{axis}]" for axis in range(self.rank))
        across = "".join(f"[B{axis} - 1 - u{axis}]" for axis in range(self.rank))
        lines = [f"    {element} {name}{''.join(f'[B{axis}]' for axis in range(self.rank))};"]
        lines += self.phase([f"{name}{own} = {source}[{r.choice(('u0', 'g0 + u0'))}];"], 2, plain=True)
        if r.random() < 0.5:
            self.uses_m = True
            other = self.fresh("tile")
            lines.insert(1, lines[0].replace(name, other))
            stir = self.phase([f"{other}{own} = {name}{across};"], 3, plain=True)
            stir += self.phase([f"{name}{own} = {self.masked(other + own, element)} + 1;"], 3, plain=True)
            lines += ["    for (int t = 0; t < m; t++) {", *stir, "    }"]
        more = (self.masked(name + across, element), self.masked(name + own, element))
        floating = element in FLOATING
        if floating:
            before, value = self.value(True, 1, more)
            _, target = self.output(True)
            return lines + self.phase([*before, f"{target} = {value} + {more[0]};"], 2)
        return lines + self.phase(self.statements(more), 2)

    def text(self) -> str:
        """The function as C text."""
        r = self.random
        nest = self.nest()
        kind = self.kind
        sizes = [f"{letter}{axis}" for letter in "NB" for axis in range(self.rank)]
        scalars = [f"{kind(size)} {size}" for size in sizes]
        scalars += [f"{kind('s')} s"] if self.granular is not None else []
        scalars += ["int m"] if self.uses_m else []
        parameters = [*scalars, *self.values, *self.arrays]
        lines = [f"void {self.name}({', '.join(parameters)})", "{"]
        lines += [f"  {kind(f'd{axis}')} d{axis} = {self.extent(axis)};" for axis in range(self.rank)]
        if self.rank > 1 and r.random() < 0.2:
            lines.append("  assert(B0 * B1 <= 256);")
        clause = ""
        if r.random() < 0.6:
            code = "\n".join(nest)
            used = [name for name in self.cacheable if re.search(rf"\b{name}\b", code)]
            chosen = [name for name in used if r.random() < 0.6]
            clause = f" cache({', '.join(chosen)})"
        lines.append(f"  meta_schedule{clause} {{")
        for axis in range(self.rank):
            brace = " {" if axis == self.rank - 1 else ""
            lines.append(f"  meta_for ({kind(f'g{axis}')} g{axis} = 0; g{axis} < d{axis}; g{axis}++){brace}")
        return "\n".join([*lines, *nest, "  }", "  }", "}", ""])


class StructureGenerator(Generator):
    """Functions that mostly read several fields of structures."""

    def read(self, floating: bool) -> str:
        r = self.random
        if r.random() < 0.3:
            return super().read(floating)
        element = r.choice(FLOATING if floating else INTEGER)
        axis = self.rank - 1 if r.random() < 0.8 else r.randrange(self.rank)
        stride = r.choice((2, 3, 3, 4, 5, 6, 7, 12))
        fields = sorted(r.sample(range(stride), r.randint((stride + 1) // 2, stride)))
        if r.random() < 0.3:
            name = self.array("f", element, [f"N{axis}", str(stride)], const=True)
            parts = [f"{name}[p{axis}][{field}]" for field in fields]
        else:
            name = self.array("f", element, [f"{stride} * N{axis}"], const=True)
            parts = [f"{name}[{stride} * p{axis} + {field}]" for field in fields]
        r.shuffle(parts)
        return "(" + " + ".join(self.masked(part, element) for part in parts) + ")"


class MixedGenerator(Generator):
    """Functions whose indices have unsigned types and types of several widths, and sometimes count on wrap-around."""

    WIDTHS = ("int", "int", "unsigned", "unsigned", "long", "unsigned long", "long long")

    def __init__(self, seed: int, name: str) -> None:
        super().__init__(seed, name)
        one = self.random.choice((None, "unsigned", "unsigned long"))
        self.kinds: dict[str, str] = {}
        self.alike = one

    def kind(self, name: str) -> str:
        if self.alike is not None:
            return self.alike
        # One name has one type, wherever it is declared.
        return self.kinds.setdefault(name, self.random.choice(self.WIDTHS))

    def coordinate(self, axis: int) -> str:
        """A coordinate, perhaps with something added that is 0 in machine arithmetic alone."""
        r = self.random
        text = super().coordinate(axis)
        factor = r.choice([f"g{axis}", f"u{axis}", *(["k"] if self.granular is not None else [])])
        match r.choice(("plain",) * 6 + ("product", "shift", "cut", "narrow", "cast", "minus")):
            case "product":
                return f"{text} + (unsigned){factor} * 65536u * 65536u"
            case "shift":
                return f"{text} + ((unsigned){factor} << 16 << 16)"
            case "cut":
                return f"{text} + (int)((long){factor} * 4294967296L)"
            case "narrow":
                return f"{r.choice(('(short)', '(unsigned short)'))}({text})"
            case "cast":
                return f"{r.choice(('(int)', '(unsigned)', '(long)', '(unsigned long)'))}({text})"
            case "minus":
                return f"{text} + (4294967295u * (unsigned){factor} + (unsigned){factor})"
            case _:
                return text

    def read(self, floating: bool) -> str:
        r = self.random
        if r.random() < 0.7:
            return super().read(floating)
        element = r.choice(FLOATING if floating else INTEGER)
        axis = r.randrange(self.rank)
        if r.random() < 0.5:
            name = self.array("a", element, [f"N{axis}"], const=True)
            back = r.choice((f"(unsigned)p{axis} + 4294967295u", f"(unsigned)p{axis} - 1u", f"p{axis} - 1ul"))
            return f"(p{axis} > 0 ? {self.masked(f'{name}[{back}]', element)} : 2)"
        name = self.array("a", element, [f"3 * N{axis} + 3"], const=True)
        index = r.choice((f"3u * p{axis} + 1", f"(unsigned)p{axis} * 3", f"((unsigned long)p{axis} << 1) + 2u"))
        return self.masked(f"{name}[{index}]", element)


def function_text(seed: int, name: str, generator: type[Generator] = Generator) -> str:
    """Return the function of a seed."""
    return generator(seed, name).text()


def file_text(seeds: range | list[int], generator: type[Generator] = Generator) -> str:
    """Return a file with the functions of several seeds."""
    head = "#include <assert.h>\n#include <math.h>\n\n"
    return head + "\n".join(function_text(seed, f"random{seed}", generator) for seed in seeds)
