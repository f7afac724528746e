"""Types of values in expressions of JSONata, as far as they show.

Signatures: https://docs.jsonata.org (read November 2026), and those of AWS's functions:
https://docs.aws.amazon.com/step-functions/latest/dg/transforming-data.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

WORDS: Final = {
    "s": "text",
    "n": "a number",
    "b": "true or false",
    "l": "null",
    "a": "a list",
    "o": "an object",
    "f": "a function",
    "r": "a regular expression",
}
ANY: Final = "m"
_SIGNATURES: Final = {
    # Text
    "string": "xb?:s", "length": "s-:n", "substring": "s-nn?:s", "substringBefore": "s-s:s",
    "substringAfter": "s-s:s", "uppercase": "s-:s", "lowercase": "s-:s", "trim": "s-:s",
    "pad": "s-ns?:s", "contains": "s-(sr):b", "split": "s-(sr)n?:a", "join": "a<s>s?:s",
    "match": "s-rn?:a", "replace": "s-(sr)(sf)n?:s", "base64encode": "s-:s",
    "base64decode": "s-:s", "encodeUrl": "s-:s", "encodeUrlComponent": "s-:s",
    "decodeUrl": "s-:s", "decodeUrlComponent": "s-:s",
    # Numbers
    "number": "(nsb)-:n", "abs": "n-:n", "floor": "n-:n", "ceil": "n-:n", "round": "n-n?:n",
    "power": "n-n:n", "sqrt": "n-:n", "random": "n?:n", "formatNumber": "n-so?:s",
    "formatBase": "n-n?:s", "formatInteger": "n-s:s", "parseInteger": "s-s:n",
    "sum": "a<n>:n", "max": "a<n>:n", "min": "a<n>:n", "average": "a<n>:n",
    # Logic
    "boolean": "x-:b", "not": "x-:b", "exists": "x:b", "assert": "bs?:m", "type": "x:s",
    # Lists, objects and functions
    "count": "a:n", "append": "xx:a", "sort": "af?:a", "reverse": "a:a", "shuffle": "a:a",
    "distinct": "x:m", "zip": "a+:a", "map": "af:m", "filter": "af:m", "single": "af?:m",
    "reduce": "afx?:m", "sift": "o-f?:m", "keys": "x-:m", "lookup": "x-s:m", "spread": "x-:m",
    "merge": "a:o", "each": "o-f:m", "error": "s?:m",
    # Time
    "now": "s?s?:s", "millis": ":n", "fromMillis": "n-s?s?:s", "toMillis": "s-s?:n",
    # Of AWS
    "partition": "an:a", "range": "nnn:a", "hash": "xs?:s", "uuid": ":s", "parse": "s:m",
}  # fmt: skip
"""Parameters and results of functions: s text, n number, b boolean, a list, o object, f function,
r regular expression, x and m anything; ``-`` may be the context, ``?`` may be left out."""
_PARAMETER = re.compile(r"(?P<types>\([a-z]+\)|[a-z])(?:<(?P<of>[a-z])>)?(?P<how>[-?+]?)")
_NUMERIC: Final = frozenset("+-*/%")
_ORDERED: Final = frozenset({"<", ">", "<=", ">="})
_RESULTS: Final = {
    **dict.fromkeys(_NUMERIC, "n"),
    **dict.fromkeys(("=", "!=", "in", "and", "or", *_ORDERED), "b"),
    "&": "s",
    "..": "a",
}
_LITERALS: Final = {"string": "s", "number": "n", "regex": "r", "lambda": "f", "partial": "f"}


def kind(node: Any) -> str:
    """Return the letter of a node's type, ``ANY`` where it does not show."""
    if node is None or node.predicate or node.stages or node.group:
        return ANY  # A predicate, an index or a grouping may give anything.
    match node.type:
        case "value":
            return "l" if node.value is None else "b" if isinstance(node.value, bool) else ANY
        case "unary":
            return {"[": "a", "{": "o", "-": "n"}.get(str(node.value), ANY)
        case "binary":
            return _RESULTS.get(str(node.value), ANY)
        case "condition":
            kinds = {kind(node.then), kind(node._else)}
            return kinds.pop() if len(kinds) == 1 else ANY
        case "block":
            return kind(node.expressions[-1]) if node.expressions else ANY
        case "path" if len(node.steps) == 1:
            return kind(node.steps[0])
        case "function":
            return _SIGNATURES.get(_name(node), ":" + ANY).rpartition(":")[2]
        case other:
            return _LITERALS.get(str(other), ANY)


def faults(node: Any, bound: set[str], *, has_context: bool) -> Iterator[str]:
    """Yield what is wrong with the types of a node's operands or arguments."""
    match node.type:
        case "apply" if node.rhs.type == "function":  # Its left side is the first argument.
            yield from _arguments(node.rhs, bound, [kind(node.lhs)], has_context)
        case "function":
            yield from _arguments(node, bound, [], has_context)
        case "binary":
            yield from _operands(str(node.value), [kind(node.lhs), kind(node.rhs)])


def _operands(operator: str, kinds: list[str]) -> Iterator[str]:
    known = [each for each in kinds if each != ANY]
    wrong = [each for each in known if each != "n"]
    if operator in _NUMERIC | {".."} and wrong:
        remedy = "; texts are joined by &" if operator == "+" else ""
        yield f"{operator} takes numbers, not {WORDS[wrong[0]]}{remedy}"
    elif operator in _ORDERED and (set(known) - {"s", "n"} or len(set(known)) > 1):
        words = " and ".join(WORDS[each] for each in known)
        yield f"{operator} compares numbers with numbers and texts with texts, not {words}"


def _name(node: Any) -> str:
    return str(node.procedure.value) if node.procedure.type == "variable" else ""


def _arguments(node: Any, bound: set[str], first: list[str], has_context: bool) -> Iterator[str]:
    name = _name(node)
    given = first + [kind(each) for each in node.arguments or ()]
    taken = _SIGNATURES.get(name, "").rpartition(":")[0]
    taken = taken if has_context else taken.replace("-", "")
    if name in bound or name not in _SIGNATURES or _takes(taken).fullmatch("".join(given)):
        return
    told = ", ".join(WORDS.get(each, "a value") for each in given) or "nothing"
    takes = ", ".join(_words(each) for each in _PARAMETER.finditer(taken)) or "nothing"
    yield f"${name} takes {takes}, and gets {told}"


def _words(parameter: re.Match[str]) -> str:
    letters = parameter["types"].strip("()")
    words = " or ".join(WORDS.get(each, "a value") for each in letters)
    return f"[{words}]" if parameter["how"] == "?" else words


def _takes(parameters: str) -> re.Pattern[str]:
    """Return a pattern of the letters of arguments that a signature takes."""
    pattern = ""
    for each in _PARAMETER.finditer(parameters):
        letters = each["types"].strip("()")
        if letters in ("x", "a"):  # Any single value stands for a list of one.
            letters = f"a{each['of']}" if each["of"] else "snblaofr"
        how = "?" if each["how"] == "-" else each["how"]
        pattern += f"[{letters}{ANY}]{how}"
    return re.compile(pattern)
