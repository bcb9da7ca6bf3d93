"""From the syntax of a schedule to its program: names, types, loops, calls."""
