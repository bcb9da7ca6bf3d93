"""Random functions as people write them: loops over elements that are cut into blocks, C89 and local pointers."""

from random import Random

from tests.random_programs.generator import Generator


class ElementGenerator(Generator):
    """Functions whose loops run over elements, upwards, downwards, in steps, and over triangles.

    An iteration writes its own elements of ``b`` and ``g`` alone.  Scalars are declared at the beginning of the
    function, or where they are needed.
    """

    def __init__(self, seed: int, name: str) -> None:
        super().__init__(seed, name)
        self.dice = Random(f"elements {seed}")
        self.name = name
        self.early: dict[str, str] = {}
        self.lesser = False

    def text(self) -> str:
        r = self.dice
        rank = r.choice((1, 1, 2, 2, 2, 3))
        variables = ["i", "j", "h"][:rank]
        nest = self._schedule(variables)
        declared = [f"  {type_} {name};" for name, type_ in self.early.items()]
        extents = "".join("[n + m + 8]" for _ in variables)
        given = (
            f"int n, int m, int s, int B0, int B1, int B2, const int a[n + m + 8][n + m + 8], "
            f"const float x[2 * (n + m + 8)], int b{extents}, float g{extents}"
        )
        assumed = "  assert(n >= 1 && m >= 1 && s >= 1);"
        return "\n".join([f"void {self.name}({given})", "{", *declared, assumed, *nest, "}", ""])

    def _early(self, name: str, type_: str) -> str:
        """Return what stands in front of an assignment: nothing, where the function declares the variable."""
        if name in self.early or self.dice.random() < 0.5:
            self.early[name] = type_
            return ""
        return f"{type_} "

    def _schedule(self, variables: list[str]) -> list[str]:
        r = self.dice
        cut = r.randint(1, len(variables))
        shape = ", ".join(r.choice((f"B{axis}", f"B{axis}", "4", "8")) for axis in range(cut))
        lines = [f"  meta_schedule meta_block({shape}) {{"]
        outer: list[str] = []
        for axis, variable in enumerate(variables):
            lines.append("  " * (axis + 2) + f"meta_for ({self._head(variable, outer)})")
            outer.append(variable)
        lines[-1] += " {"
        lines += ["      " + "  " * len(variables) + line for line in self._body(variables)]
        return [*lines, "    }", "  }"]

    def _head(self, v: str, outer: list[str]) -> str:
        r = self.dice
        first = self._early(v, "int")
        step = r.choice((f"{v}++", f"{v}++", f"++{v}", f"{v} += 1", f"{v} += 2", f"{v} += s", f"{v} = {v} + 3"))
        if outer and not self.lesser and r.random() < 0.4:
            o = r.choice(outer)
            head = r.choice(
                (f"{o}; {v} < n + 2", f"0; {v} <= {o}", f"0; {v} < {o} + m && {v} < n", f"n - n / 2; {v} < 1 + {o}")
            )
            return f"{first}{v} = {head}; {v}++"
        if r.random() < 0.25:
            down = r.choice((f"{v}--", f"{v} -= s", f"{v} -= 2", f"--{v}"))
            start, last = r.choice(("n - 1", "n", "m + 1")), r.choice((">= 0", "> 0", "> s - s", ">= 1"))
            return f"{first}{v} = {start}; {v} {last}; {down}"
        start = r.choice(("0", "0", "0", "1", "2", "m / 2"))
        self.lesser = self.lesser or r.random() < 0.2  # of such a range Start does not say that it has iterations
        if self.lesser:
            start = "0"
        limit = r.choice(
            (f"{v} < (n < m ? n : m)", f"{v} <= (m > n ? n : m)")
            if self.lesser
            else (f"{v} < n", f"{v} < n", f"{v} <= n", f"n > {v}", f"{v} < n - 1", f"{v} < n + s && {v} < m + n")
        )
        return f"{first}{v} = {start}; {limit}; {step}"

    def _body(self, variables: list[str]) -> list[str]:
        r = self.dice
        own = "".join(f"[{v}]" for v in variables)
        i, last = variables[0], variables[-1]
        lines: list[str] = []
        element = f"a[{i}][{last}]"
        if r.random() < 0.5:
            offset = r.choice((f"a[{i}]", f"&a[{i}][0]", f"a[{i}] + 1 - 1"))
            lines.append(f"const int *row = {offset};")
            element = r.choice((f"row[{last}]", f"*(row + {last})", f"row[{last} + 1 - 1]"))
        target = f"g{own}"
        if r.random() < 0.4:
            lines.append(f"float *place = &g{own};")
            target = "*place"
        if r.random() < 0.3:
            lines.append(f"if (({i} + 2 * {last}) % 3 == 1) continue;")
        t = self._early("t", "int")
        how = r.randrange(3)
        if how == 0 or (how == 1 and t):
            lines.append(f"{t}t = {element} * {r.randint(1, 9)} + {last};")
        elif how == 1:
            lines.append(f"if ({element} & 1) t = {i}; else {{ t = 3; t = t - {last}; }}")
        else:
            if t:
                lines.append("int t;")
            lines.append(f"for (t = 0; t < 4 && a[{i}][t] > 2; t++) {{}}")
        sum_ = self._early("sum", "float")
        lines.append(f"{sum_}sum = t;")
        if r.random() < 0.7:
            k = self._early("k", "int")
            walk = r.choice((f"{k}k = 0; k < m; k++", f"{k}k = m - 1; k >= 0; k--"))
            values = r.choice((f"x[{last} + k]", f"x[k] * {i}", "x[k + 1] - t"))
            if r.random() < 0.3 and not sum_:
                lines.append(f"const float *v = x + {last};")
                values = "v[k]"
            lines.append(f"for ({walk}) sum += {values};")
        lines.append(f"{target} = sum;")
        lines.append(f"b{own} = t - {element};")
        return lines
