"""Words of CUDA, OpenCL, C++ and Python in a schedule: names that nothing declares, and tokens that are no C."""

from __future__ import annotations

import re
from collections.abc import Sequence

from metafork.frontend.text.other_languages.advice import Advice, spelled
from metafork.frontend.text.other_languages.heads import head_around, loops_of, with_parameter
from metafork.frontend.text.other_languages.types import foreign_type, of_storage, placed
from metafork.frontend.text.tokens import Token, TokenKind, hull
from metafork.frontend.text.vocabulary import MATH_FUNCTIONS
from metafork.ir.messages.source import Span

INDEX_WORDS = frozenset({"blockIdx", "threadIdx", "blockDim", "gridDim", "warpSize"})
_INDEX_FUNCTIONS = frozenset({"get_global_id", "get_local_id", "get_group_id", "get_local_size", "get_global_size"})
_CONSTANTS = {"True": "1", "False": "0", "nullptr": "NULL"}
_OPERATORS = {"and": "&&", "or": "||", "not": "!"}
_CASTS = ("static_cast", "reinterpret_cast", "const_cast", "dynamic_cast")


def unknown_name(name: str, before: str) -> Advice | None:
    """Return what is said of a name that nothing declares, or of a call of it; ``before`` is the text in front."""
    if re.search(r"\bmeta_block\s*\([^()]*$", before):
        return _block_size(name, before)
    if name in _CONSTANTS:
        return Advice(f"`{name}` is not declared", "the file is C.", f"write `{_CONSTANTS[name]}`.", certain=False)
    if name == "RAND_MAX":
        reason = "the random numbers of the host's library are not for a schedule."
        return Advice(f"`{name}` is not declared", reason, "write the number.", "random numbers")
    if name not in INDEX_WORDS | _INDEX_FUNCTIONS:
        return None
    language = "CUDA" if name in INDEX_WORDS else "OpenCL"
    reason = f"in a schedule the variables of the `meta_for` loops are the indices. `{name}` does not exist."
    return Advice(f"`{name}` is a word of {language}", reason, _variables(before), "index words")


def _block_size(name: str, before: str) -> Advice:
    """Return what is said of the size of a block that nothing declares."""
    reason = f"`meta_block` says how many threads a block has. The caller chooses `{name}`."
    head = head_around(before)
    if head is not None and re.search(rf"\b{name}\b", head):
        head = None
    way = "declare it as an integer, or give a number: `meta_block(256)`."
    if head is not None:
        head = with_parameter(head, f"int {name}")
        way = f"give a number, `meta_block(256)`, or make `{name}` a parameter of the function:\n{head}"
    return Advice(f"`{name}` is not declared", reason, way, certain=False)


def element_index(before: str) -> str:
    """Return the index of an element in a schedule, as the heads of its loops in the text in front say it."""
    schedule = before[before.rfind("meta_schedule") :]
    loops = loops_of(schedule)
    if "meta_block" in schedule or len(loops) != 2:
        return loops[-1][0] if loops else "i"
    (block, _), (thread, size) = loops
    size = size.strip()
    return f"{block} * {size if re.fullmatch(r'[0-9A-Za-z_]+', size) else f'({size})'} + {thread}"


def _variables(before: str) -> str:
    schedule = before[before.rfind("meta_schedule") :]
    loops = loops_of(schedule)
    if "meta_block" not in schedule and len(loops) == 2:
        (block, _), (thread, size) = loops
        return (
            f"`{block}` is the block, `{thread}` the thread, and `{size.strip()}` the size of a block: the index of an "
            f"element is `{element_index(before)}`."
        )
    names = ", ".join(f"`{name}`" for name, _ in loops) or "`i`"
    if len(loops) == 1:
        return f"use the variable of the loop, {names}, as the index of an element."
    return f"use the variables of the loops: {names}."


def storage_words(tokens: Sequence[Token]) -> dict[int, Advice]:
    """Return the places of words that say where CUDA keeps a variable, with what is said of each."""
    return {index: of_storage(tokens[index].text) for index in placed(tokens)}


def foreign_syntax(tokens: Sequence[Token]) -> tuple[Span, Advice] | None:
    """Return what in a piece that cannot be parsed is C++ or Python, and what is said of it."""
    texts = [token.text for token in tokens]
    for here, (token, text) in enumerate(zip(tokens, texts, strict=True)):
        after = texts[here + 1 : here + 4]
        if text == "&" and after[1:2] == ["="] and 0 < here < 4 and tokens[here - 1].kind is TokenKind.NAME:
            value = spelled(texts[here + 3 :]).rstrip(";")
            way = f"write `{value}` in place of `{after[0]}`."
            return hull(tokens[0].span, tokens[here + 1].span), _of_cpp(
                spelled(texts[: here + 2]), "C has no references.", way
            )
        if text == "auto" and after[:1] and tokens[here + 1].kind is TokenKind.NAME:
            return token.span, _of_auto(after[0], tokens[here + 2 :])
        if after[:2] == [":", ":"] and token.kind is TokenKind.NAME:
            found = [here, here + 3] if len(after) == 3 else [here, here + 2]
            return hull(tokens[here].span, tokens[found[1]].span), _qualified(texts, here)
        if text in _CASTS and after[:1] == ["<"] and ">" in texts[here:]:
            close = texts.index(">", here)
            type_ = " ".join(texts[here + 2 : close])
            way = f"write `({type_})(...)`, with the value between the parentheses."
            return token.span, _of_cpp(text, "C casts with the type in parentheses.", way)
        if text in _OPERATORS and token.kind is TokenKind.NAME and (text == "not" or here):
            way = f"write `{_OPERATORS[text]}`."
            return token.span, Advice(f"`{text}` is no operator of C", "the file is C.", way)
        if text in ("new", "delete") and token.kind is TokenKind.NAME:
            way = "declare an array of the thread, such as `float t[4];`."
            return token.span, _of_cpp(text, "the memory of a kernel is fixed before it runs.", way)
        if text == "(" and after[1:2] == [")"] and (advice := foreign_type(after[:1], "")) is not None:
            return tokens[here + 1].span, advice
        if text == "*" and after[:1] in (["*"], ["*="]) and tokens[here + 1].span.start == token.span.end:
            return hull(token.span, tokens[here + 1].span), power("", "")
    return None


def power(base: str, exponent: str) -> Advice:
    """Return what is said of ``**``."""
    way = "write a product, such as `x * x`, or `pow(x, y)`."
    if exponent == "2" and base:
        way = f"write `{base} * {base}`." if re.fullmatch(r"[\w\[\].]+", base) else f"write `({base}) * ({base})`."
    elif base and exponent:
        way = f"write `pow({base}, {exponent})`, or `powf({base}, {exponent})` for `float`."
    return Advice("C has no operator `**`", "`**` is a product with what a pointer leads to.", way)


def _of_cpp(what: str, reason: str, way: str) -> Advice:
    return Advice(f"`{what}` is C++, and metafork reads C", reason, way)


def _of_auto(name: str, behind: Sequence[Token]) -> Advice:
    """Return what is said of ``auto``; the type is that of a single number, or ``int``."""
    value = [token.text for token in behind if token.text != ";"]
    literal = value[1] if len(value) == 2 and value[0] == "=" else ""
    type_ = "int"
    if re.match(r"[\d.]+", literal) and not literal.startswith("0x") and re.search(r"[.eE]", literal):
        type_ = "float" if literal[-1] in "fF" else "double"
    shown = f"{type_} {name} = {literal}" if literal else f"{type_} {name}"
    return Advice(
        "`auto` does not name a type in C", "only C++ takes the type from the value.", f"write the type: `{shown}`."
    )


def _qualified(texts: Sequence[str], here: int) -> Advice:
    """Return what is said of ``std::max(a, b)``, or of another name with ``::``."""
    name = texts[here + 3] if here + 3 < len(texts) else ""
    what = f"{texts[here]}::{name}"
    if name in ("cout", "cerr", "clog"):
        way = "remove the line. To see values, store them in an array and print that array after the schedule."
        return _of_cpp(what, "a schedule runs on the GPU. It computes on arrays, and cannot print.", way)
    reason = "the functions of a schedule are those of `math.h`, and those of the file."
    arguments = _arguments(texts, here + 4)
    if name in ("max", "min") and len(arguments) == 2:
        sign = ">" if name == "max" else "<"
        first, second = arguments
        real = f"f{name}f({first}, {second})"
        if any(re.search(r"\d[\d.]*[fF]\b", one) for one in arguments):
            return _of_cpp(what, reason, f"write `{real}`.")
        way = f"write `{first} {sign} {second} ? {first} : {second}` for integers, `{real}` for `float`."
        return _of_cpp(what, reason, way)
    if name in MATH_FUNCTIONS:
        given = ", ".join(arguments)
        single = f", or `{name}f({given})` for `float`" if f"{name}f" in MATH_FUNCTIONS else ""
        return _of_cpp(what, reason, f"write `{name}({given})`{single}.")
    return _of_cpp(what, reason, "write it in C, with arrays, loops and functions of `math.h`.")


def _arguments(texts: Sequence[str], opening: int) -> list[str]:
    """Return the arguments in the parentheses that open at an index, as C."""
    if texts[opening : opening + 1] != ["("]:
        return []
    pieces, depth = [""], 0
    for text in texts[opening + 1 :]:
        depth += (text in ("(", "[")) - (text in (")", "]"))
        if depth < 0:
            return [spelled(one.split()) for one in pieces]
        if text == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += f" {text}"
    return []


def foreign_head(keyword: str, text: str) -> Advice | None:
    """Return what is said of the head of a loop, without its parentheses, that has not three parts."""
    message = f"a `{keyword}` has the head of a `for` of C"
    reason = "it has three parts, with semicolons between them: the start, the condition and the step."
    text = " ".join(text.split())
    if found := re.fullmatch(r"(?:([\w ]+) )?(\w+) in range ?\((.+)\)", text):
        given = [one.strip() for one in found[3].split(",")]
        start, end = ("0", given[0]) if len(given) == 1 else given[:2]
        step = "++" if len(given) < 3 else f" += {given[2]}"
        name = found[2]
        head = f"{keyword} ({found[1] or 'int'} {name} = {start}; {name} < {end}; {name}{step})"
        return Advice(message, reason, f"write:\n{head}")
    parts = [one.strip() for one in text.split(",")]
    if len(parts) == 3 and re.search(r"[<>]", parts[1]):
        return Advice(message, reason, f"write:\n{keyword} ({'; '.join(parts)})")
    if len(parts) == 2 and (found := re.fullmatch(r"(?:([\w ]+) )?(\w+) ?= ?([^;]+)", parts[0])):
        name = found[2]  # Fortran's loops have their last value, too
        head = f"{keyword} ({found[1] or 'int'} {name} = {found[3]}; {name} <= {parts[1]}; {name}++)"
        return Advice(message, reason, f"write:\n{head}")
    if found := re.fullmatch(r"([\w ]+?)[ &*]+(\w+) ?(?::|in) ?(\w+)", text):
        index = f"{found[2]}_index"
        head = f"{keyword} (int {index} = 0; {index} < n; {index}++)"
        way = f"count the n elements, and use `{found[3]}[{index}]` in place of `{found[2]}`:\n{head}"
        return Advice(message, reason, way)
    return None
