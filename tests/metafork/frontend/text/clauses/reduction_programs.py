"""Reductions by each operation: their types and updates, and a program of blocks that add up in one element."""

OPERATIONS = {
    "+": ("int", "{r} += {v};"),
    "-": ("long", "{r} -= {v};"),
    "*": ("unsigned char", "{r} *= {v} | 1;"),
    "&": ("short", "{r} &= {v};"),
    "|": ("unsigned", "{r} = {v} | {r};"),
    "^": ("long long", "{r} ^= {v};"),
    "min": ("int", "{r} = {v} < {r} ? {v} : {r};"),
    "max": ("short", "if ({v} > {r}) {r} = {v};"),
}


def blocks(op):
    """The threads of all blocks add up in one element."""
    type_, update = OPERATIONS[op]
    update = update.format(r="*sum", v="x[p]")
    return f"""
void all_{list(OPERATIONS).index(op)}(int n, int B, const short x[n], {type_} *sum)
{{
  meta_schedule {{
    meta_reduction({"+" if op == "-" else op}: sum)
    meta_for (int i = 0; i < (n + B - 1) / B; i++)
      meta_for (int j = 0; j < B; j++) {{
        int p = i * B + j;
        if (p >= n) continue;
        {update}
      }}
  }}
}}
"""
