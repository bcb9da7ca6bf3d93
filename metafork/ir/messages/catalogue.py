"""Every diagnostic code of the front end: what it is about, why it is refused, and the usual way out.

Codes are stable: a code is never given a second meaning.  ``MF00xx`` are about the text, ``MF01xx`` about the loop
nest, ``MF02xx`` about constructs, ``MF03xx`` about names and types, ``MF04xx`` (races) belong to later analyses.
"""

from __future__ import annotations

from msgspec import Struct


class Entry(Struct, frozen=True):
    """A code's title, its default reason and its default way out."""

    code: str
    title: str
    reason: str
    way_out: str


_ENTRIES = (
    Entry(
        "MF0001",
        "the file is not UTF-8",
        "the text is carried over to generated files and must be readable.",
        "save the file as UTF-8, for instance with `iconv -f latin1 -t utf-8`.",
    ),
    Entry(
        "MF0002",
        "no schedule in the file",
        "only a `meta_schedule { ... }` goes to the device; there is nothing to optimize.",
        "put `meta_schedule` in front of the loop nest and make its parallel loops `meta_for`s.",
    ),
    Entry("MF0003", "a comment is not closed", "everything after it would be comment.", "close it with `*/`."),
    Entry(
        "MF0004",
        "a bracket has no partner",
        "the extent of functions and schedules cannot be told.",
        "add or remove the bracket.",
    ),
    Entry(
        "MF0005",
        "nesting is too deep",
        "analyses follow the nesting, and this is far beyond what programs need.",
        "name parts of it with variables of their own.",
    ),
    Entry(
        "MF0006",
        "conditional compilation around or inside a schedule",
        "which text is compiled is decided after this tool has run.",
        "run the preprocessor first, or move the `#if` so that no schedule is inside or around it.",
    ),
    Entry(
        "MF0007",
        "a directive inside a schedule",
        "the schedule's text is replaced by a dispatch, and the directive would be lost or misplaced.",
        "move the directive in front of the function.",
    ),
    Entry(
        "MF0008",
        "a macro that cannot be followed",
        "only macros with one certain definition, without `#`, can be expanded here.",
        "define it unconditionally or by `-D NAME=VALUE`, make it a parameter of the function, or write its text out.",
    ),
    Entry(
        "MF0009",
        "a macro is used with the wrong number of arguments",
        "it cannot be expanded.",
        "give as many arguments as its definition names.",
    ),
    Entry(
        "MF0010",
        "a syntax error",
        "a schedule is C99, with nine words of MetaFork.",
        "correct it; the place is where the parser stopped.",
    ),
    Entry(
        "MF0011",
        "a misspelled keyword",
        "it looks like a keyword of the language that is spelled otherwise.",
        "use the spelling of the language.",
    ),
    Entry(
        "MF0012",
        "meta_for outside a schedule",
        "only loops inside a `meta_schedule` go to the device.",
        "put `meta_schedule` in front of the nest, or make it a `for`.",
    ),
    Entry(
        "MF0013",
        "a schedule inside a schedule",
        "a schedule is one launch; it cannot launch another.",
        "remove the inner `meta_schedule`.",
    ),
    Entry(
        "MF0014",
        "an empty schedule",
        "there is nothing to run.",
        "write the loop nest into it, or remove `meta_schedule`.",
    ),
    Entry(
        "MF0015",
        "a schedule outside a function",
        "a file that defines functions is no bare fragment, and statements stand in functions only.",
        "move it into a function, or into a file of its own.",
    ),
    Entry(
        "MF0016",
        "a function is too long",
        "analyses take longer than anyone would wait for, and this is far beyond what people write.",
        "keep the schedule in a function of its own, or write a loop in place of what repeats.",
    ),
    Entry(
        "MF0017",
        "a schedule in a header, or in a macro that is no statement",
        "what gives a schedule is replaced by a dispatch: a statement of the file, the use of a macro for one.",
        "write `meta_schedule { ... }` in a function of the file, or a macro for the whole of it and nothing else.",
    ),
    Entry(
        "MF0018",
        "a header that is not found",
        "names that nothing declares are used, and the header may declare them.",
        "name the folder that it lies in: `-I DIRECTORY`.",
    ),
    Entry(
        "MF0101",
        "the `meta_for`s of a nest do not say which are the grid and which are the threads",
        "a GPU runs blocks of threads. Grid and block have one to three dimensions each; serial code separates "
        "them, else the first half of the loops is the grid.",
        "cut loops over elements into blocks, `meta_schedule meta_block(B)`, or say how many loops are the grid's, "
        "`meta_schedule meta_grid(2)`.",
    ),
    Entry(
        "MF0102",
        "paths with different numbers of meta_for loops",
        "all phases of a block share its shape.",
        "give every nest of thread loops the same number of `meta_for`s.",
    ),
    Entry(
        "MF0103",
        "a meta_for of another form",
        "its iterations become block or thread indices, so their number must be known before it runs.",
        "write `meta_for (int v = first; v < last; v++)`, with any step, and compute other indices in the body.",
    ),
    Entry(
        "MF0104",
        "an extent that is no integer",
        "extents count blocks, threads or elements.",
        "use an integer expression.",
    ),
    Entry(
        "MF0105",
        "an extent that depends on more than parameters",
        "the launch is shaped before it runs, alike for all blocks and threads.",
        "use an upper bound over parameters as the extent, and an `if` in the body; what the host can read, read into "
        "a scalar before the schedule.",
    ),
    Entry(
        "MF0106",
        "a statement among meta_for loops",
        "the grid's loops, and the loops of one nest of threads, must follow each other directly.",
        "move the statement in front of the schedule or into the innermost loop.",
    ),
    Entry(
        "MF0107",
        "more than one nest in a schedule",
        "a schedule is one launch of one grid.",
        "give every nest a `meta_schedule` of its own.",
    ),
    Entry(
        "MF0108",
        "an array write at block level",
        "every thread of the block would do it.",
        "move it into a nest of thread loops, under an `if` for one thread where only one must write.",
    ),
    Entry(
        "MF0109",
        "a block-level or thread-level scalar written by concurrent iterations",
        "iterations of a `meta_for` may run concurrently and share it.",
        "declare the scalar inside the innermost `meta_for`.",
    ),
    Entry(
        "MF0110",
        "a block-level read of an array that the schedule writes",
        "threads do not reach the read together, so some could see a later value.",
        "read it inside the thread loops.",
    ),
    Entry(
        "MF0111",
        "a jump out of a meta_for",
        "iterations of a `meta_for` are independent: none can end the others.",
        "use an `if` around the rest of the body.",
    ),
    Entry(
        "MF0112",
        "a schedule without meta_for",
        "only `meta_for` loops say what may run concurrently.",
        "make the outer parallel loops `meta_for`s.",
    ),
    Entry(
        "MF0113",
        "the variable of a meta_for is written",
        "it is a block or thread index.",
        "copy it into a variable of your own and change that.",
    ),
    Entry(
        "MF0114",
        "a block that no GPU runs (a warning)",
        "a block has at most 1024 threads. The serial code would run on every machine.",
        "give a number up to 1024; 128 and 256 are usual.",
    ),
    Entry(
        "MF0115",
        "blocks of a multiprocessor that cannot be",
        "a multiprocessor runs at most 32 blocks and 2048 threads at once.",
        "give a constant from 1 to 32, `meta_schedule meta_min_blocks(4)`, with at most 2048 threads in all.",
    ),
    Entry(
        "MF0201",
        "a pointer",
        "the device has its own memory: only arrays with extents can be moved there.",
        "declare it as an array, `float a[n]`, or say how many elements it leads to, `#pragma metafork extents(a[n])`: "
        "in front of the function for a parameter, in front of the schedule for another variable.",
    ),
    Entry("MF0202", "address-of", "addresses on the host mean nothing on the device.", "use the array and an index."),
    Entry("MF0203", "a dereference", "pointers do not go to the device.", "index an array: `a[i]`."),
    Entry("MF0204", "goto or a label", "control flow in a schedule is structured.", "use `if`, `for` or `while`."),
    Entry(
        "MF0205",
        "a structure that is no row of scalars",
        "scalars, and arrays and structures of them, are rows of arrays; what else it may hold has no place there.",
        "use members that are scalars, or one array for each member; in expressions, name a member. Members of a "
        "parameter are parameters too (`g.n`, `a->data[i]`) where nothing in the function may change them; else hand "
        "them to a function that has the schedule, `f_of(p.n, p.x, ...)`.",
    ),
    Entry(
        "MF0206",
        "a call to an unknown function",
        "only functions of `math.h` that CUDA has, and functions with a body in the file, can be called on the device.",
        "write the computation out, or as a macro of the same file.",
    ),
    Entry(
        "MF0207",
        "a call with the wrong number of arguments",
        "the function is declared otherwise.",
        "give it the arguments it takes.",
    ),
    Entry(
        "MF0208",
        "an array without extents",
        "without them it is not known how much to move to the device.",
        "declare every extent: `float a[n][n]`.",
    ),
    Entry(
        "MF0209",
        "an array of a thread without constant extents",
        "a thread's own arrays live in registers or in memory that is set aside before the launch.",
        "give it a number for each extent, the most that it needs.",
    ),
    Entry(
        "MF0211",
        "a switch that is no chain of branches",
        "labels stand directly in the braces of the `switch`, and its value is read for each of them.",
        "use `if` and `else if`; keep the value of a call in a variable: `int chosen = f(x);`, `switch (chosen)`.",
    ),
    Entry(
        "MF0212",
        "return inside a schedule",
        "the schedule is replaced by a dispatch, and threads do not return.",
        "set a variable and return after the schedule.",
    ),
    Entry(
        "MF0213",
        "an assignment to an element inside an expression",
        "only scalars of the schedule are assigned there: it is not known what else the expression reads.",
        "make it a statement of its own.",
    ),
    Entry("MF0214", "a comma operator", "statements have one effect each here.", "write separate statements."),
    Entry("MF0215", "a string", "the device code has no use for it.", "move input and output out of the schedule."),
    Entry(
        "MF0216",
        "a type that is not supported",
        "the device code knows the integer types, float and double.",
        "use one of `char`, `short`, `int`, `long`, `long long`, their unsigned forms, `float`, `double`.",
    ),
    Entry(
        "MF0217",
        "a storage class or qualifier that is not supported",
        "variables of a schedule live in registers, each iteration's own.",
        "remove the word.",
    ),
    Entry(
        "MF0218",
        "an expression of a form that is not supported",
        "it has no counterpart in the device code.",
        "use operators, casts, `?:` and functions of `math.h`.",
    ),
    Entry(
        "MF0219",
        "a statement without effect or with an effect that is not supported",
        "thread code is made of declarations, assignments, `++`, `--`, `if` and loops.",
        "remove it, or make it an assignment.",
    ),
    Entry(
        "MF0220",
        "a declaration that is not supported",
        "only scalars and arrays can be declared in a schedule.",
        "move it in front of the function.",
    ),
    Entry(
        "MF0221",
        "an initialised array of a block, or an initialiser that does not fit",
        "shared memory has no initial contents.",
        "write the elements in thread loops.",
    ),
    Entry(
        "MF0222",
        "a function that calls itself",
        "functions are put in line where a schedule calls them, which would never end.",
        "write it as a loop.",
    ),
    Entry(
        "MF0223",
        "a call that cannot be put in line",
        "functions of the file become a part of the schedule that calls them, arguments in the place of parameters.",
        "write the computation out, or as a macro of the same file.",
    ),
    Entry(
        "MF0224",
        "an atomic update of a form that is not supported",
        "what many threads update at the same time must come out the same in every order.",
        "write `a[e] += v`, `-=`, `*=`, `&=`, `|=`, `^=`, `a[e]++`, or `a[e] = a[e] < v ? v : a[e]`, with "
        "integers; for floating-point numbers `a[e] += v` or `-=`, with `--reassociate`.",
    ),
    Entry(
        "MF0225",
        "a reduction of a form that is not supported",
        "threads add up in any order, each in a register of its own.",
        "write `meta_reduction(+: sum)` before a `meta_for`, with one of `+ * & | ^ min max`, and only update `sum` by "
        "it: an array or a pointer to the result, or, before the loops of threads, a scalar of the block; "
        "`--reassociate` for floating-point numbers.",
    ),
    Entry(
        "MF0226",
        "values of static parameters that cannot be",
        "kernels are compiled also for these values of program parameters of the schedule that follows.",
        "write `meta_static(s: 1, 2, 4)` in front of `meta_schedule`; each parameter once, each value at least 1.",
    ),
    Entry(
        "MF0301",
        "a name that is not declared",
        "it must be a parameter, a variable or an array that is in scope.",
        "declare it, or correct its spelling.",
    ),
    Entry(
        "MF0302",
        "a wrong number of indices",
        "only whole elements are read and written.",
        "give as many indices as the array has extents.",
    ),
    Entry("MF0303", "an index that is no integer", "elements are counted.", "cast it: `(int)x`."),
    Entry(
        "MF0304",
        "a write to a variable from outside the schedule",
        "parameters and value arguments are handed to every thread and never come back.",
        "use a variable declared in the schedule, or an array of one element for a result.",
    ),
    Entry(
        "MF0305", "a write to something const", "it was declared `const`.", "remove `const`, or write to another array."
    ),
    Entry(
        "MF0306",
        "operands of a wrong type",
        "C defines this operator on integers only.",
        "cast the operands, or use another operator.",
    ),
    Entry("MF0307", "a name declared twice in one scope", "C allows one.", "rename one of them."),
    Entry(
        "MF0308",
        "cache() names something that is no array of the schedule",
        "only arrays that the schedule reads or writes can go through shared memory.",
        "name arrays that the schedule uses.",
    ),
    Entry(
        "MF0309",
        "an extent that changes after the array's declaration",
        "the array keeps the extent it was declared with, and the dispatch would see the new value.",
        "use a variable that is not written after the declaration.",
    ),
    Entry("MF0310", "a scalar that is indexed", "only arrays have elements.", "declare it as an array with extents."),
    Entry(
        "MF0311",
        "a target that cannot be assigned",
        "only variables and elements of arrays can be written.",
        "assign to a variable or to an element.",
    ),
    Entry(
        "MF0312",
        "an extent of an array that is not understood",
        "extents are integer expressions over parameters.",
        "compute it into an integer variable first.",
    ),
    Entry(
        "MF0313", "a name of the generated code", "the dispatch that is put into the text uses it itself.", "rename it."
    ),
    Entry(
        "MF0314",
        "a constant that is not supported",
        "it does not fit the types of the language.",
        "write it as an integer or floating constant of C.",
    ),
    Entry(
        "MF0315",
        "a variable of a type that no schedule can use",
        "its type is not a scalar or an array of scalars.",
        "copy its value into an integer or floating variable in front of the schedule.",
    ),
    Entry(
        "MF0316",
        "an array that is moved before the schedule",
        "from another place on, it is not known how many elements it has.",
        "use an index in place of moving the array, or exchange arrays of the same extents: `t = x; x = y; y = t;`.",
    ),
    Entry(
        "MF0321",
        "extents that cannot be",
        "`#pragma metafork extents` says how many elements the pointers of a function lead to.",
        "write `#pragma metafork extents(p[n], q[n * m])` in front of the function or within, with its own pointers.",
    ),
    Entry(
        "MF0322",
        "a promise about nothing",
        "`#pragma metafork disjoint` vouches for accesses of the assignment or declaration that follows.",
        "put it right before that statement, and name arrays that it touches.",
    ),
    Entry(
        "MF0401",
        "a race between blocks",
        "blocks run at the same time and in any order.",
        "let one thread make all updates of an element (a `for` in place of a `meta_for`), say that it is a sum "
        "(`meta_reduction`), or update it by `meta_atomic` (floating-point numbers with `--reassociate`).",
    ),
    Entry(
        "MF0402",
        "a race between threads",
        "threads of a block run at the same time between two nests of thread loops.",
        "put the write and the read into two nests of thread loops. For what all threads add up, use a `for`, "
        "`meta_reduction`, or `meta_atomic` (floating-point numbers with `--reassociate`).",
    ),
    Entry(
        "MF0403",
        "accesses that are not proved free of races",
        "neither a proof nor two conflicting iterations were found.",
        "make the update atomic, or compute the indices from loop variables and parameters. If the elements never "
        "meet, write `#pragma metafork disjoint(NAME)` in the line before.",
    ),
    Entry(
        "MF0404",
        "an access outside of its array",
        "an iteration leaves the array whatever the parameters are. Only the declared elements go to the device.",
        "let the loops end earlier, or check the index. If the array is larger, declare it so.",
    ),
    Entry(
        "MF0405",
        "a pointer of which nobody knows how many elements it leads to (a warning)",
        "kernels need not know it, but copies to the GPU do. If nothing says it, the host goes through all indices "
        "before each launch, or the serial code runs.",
        "write `#pragma metafork extents(p[n])` in front of the function, or of the schedule for another variable; or "
        "tell it at run time, `metafork_extent(p, bytes)`. With `p[?]` in the pragma nothing is said.",
    ),
    Entry(
        "MF0601",
        "a directive that does not apply",
        "a directive is applied only where it is proved that the program computes the same afterwards.",
        "leave the directive out, or change the loop or the access at this place.",
    ),
    Entry(
        "MF0602",
        "a pragma that is no schedule",
        "`#pragma metafork schedule` has directives in parentheses, with semicolons between them.",
        "write `#pragma metafork schedule(tile(v, 4); cache(a))` right in front of `meta_schedule`.",
    ),
)

CATALOGUE = {entry.code: entry for entry in _ENTRIES}
