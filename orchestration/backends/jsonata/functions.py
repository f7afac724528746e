"""The functions of the expression language in JSONata.

Where a text begins or ends with a literal, what a function makes of that part is known before the
run, and is written as the literal it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from orchestration.backends.jsonata import texts
from orchestration.backends.jsonata.code import OPERATORS, Code, Kind, Writer, let
from orchestration.backends.jsonata.writing import field, quote, refused
from orchestration.errors import UnsupportedError
from orchestration.expressions import Apply, Function, Join, Tree, elements
from orchestration.expressions.functions import CHECKSUM, LAST_NUMBER, OF_PARTS, OTHER_KEYS
from orchestration.refs import Expression


def call(node: Apply, writer: Writer) -> Code:  # noqa: C901 - one arm for each function
    """Write a function applied to arguments."""
    arguments = node.arguments
    match node.function:
        case Function.HASH:
            value = writer.asked(arguments[0], "string").text
            return Code(f"$substring($hash({value}, 'SHA-256'), 0, 12)", "string", "a hash")
        case Function.FINGERPRINT:
            before, items = writer.asked(arguments[0], "string"), arguments[1]
            return _fingerprint(before, writer.asked(items, "array"))
        case Function.CONTAINS:
            whole, part = (writer.asked(a, "string").text for a in arguments)
            return Code(f"$contains({whole}, {part})", "boolean", "a condition")
        case Function.COUNT:
            return _count(writer.asked(arguments[0], "array"))
        case Function.COUNT_FILES:
            return _count_files(writer.asked(arguments[0], "array"))
        case Function.SUM:
            return _sum(writer.asked(arguments[0], "array"), arguments[1], writer)
        case Function.LARGEST:
            return _largest(writer.asked(arguments[0], "array"), arguments[1], writer)
        case Function.NUMBERED:
            return _numbered(writer.asked(arguments[0], "array"), arguments[1], writer)
        case Function.WHERE:
            return _where(node, writer)
        case Function.PICKED:
            return _picked(writer.asked(arguments[0], "array"), arguments[1:])
        case Function.TOP:
            return _top(arguments, writer)
        case Function.TAG:
            return _tag(writer.asked(arguments[0], "array"), arguments[1], writer)
        case Function.DIFFERENCE:
            return _difference(*(writer.asked(a, "array") for a in arguments))
        case Function.SAME_CONTENT:
            return _same_content(arguments, writer)
        case Function.TEXT:
            return writer.code(Join((arguments[0],)))  # type: ignore[arg-type]  # a join of any tree renders
        case Function.COLUMN:
            return _column(writer.asked(arguments[0], "array"), arguments[1], writer)
        case Function.LISTED:
            column = _column(writer.asked(arguments[0], "array"), arguments[1], writer)
            text = f"($join({column.text}, ', ') & '')"
            return Code(text, "string", f"the list of {column.label}")
        case Function.MISFITS:
            return _misfits(writer.asked(arguments[0], "array"), arguments[1:])
        case Function.FIRST_OF:
            return _first_of([writer.asked(argument, "value") for argument in arguments])
        case Function.REMOVE_PREFIX | Function.TIME_TEXT | Function.DIRECTORY | Function.URL_PATH:
            return texts.TEXTS[node.function](arguments, writer)
        case Function.S3_BUCKET | Function.S3_KEY | Function.ARN_NAME:
            return texts.TEXTS[node.function](arguments, writer)
        case _:
            assert_never(node.function)


def _column(items: Code, key: Tree, writer: Writer) -> Code:
    label = f"a field of {items.label}"
    value, known = "$lookup($o, $k)", {"k": writer.asked(key, "string").text}
    if isinstance(key, str):
        value, known = field("$o", key), {}
    test = f"$type($o) = 'object' and $type({value}) in ['string', 'number', 'boolean', 'null']"
    error = refused(f"an element of {items.label} lacks it, or it holds more than one value")
    text = f"[$map({items.text}, function($o) {{ {test} ? {value} : {error} }})]"
    return Code(let(known, text) if known else text, "array", label)


def _misfits(items: Code, asked: Sequence[Tree]) -> Code:
    key, *pairs = map(str, asked)
    element = f"{quote(elements.ELEMENT)} & $string($i + 1)"
    words = "''"
    for name, kind in reversed(list(zip(pairs[::2], pairs[1::2], strict=True))):
        wrong = f"{element} & {quote(elements.lacks(name, kind))}"
        words = f"$type({field('$o', name)}) = '{kind}' ? {words} : {wrong}"
    words = f"$type($o) = 'object' ? ({words}) : {element} & {quote(elements.NOT_AN_OBJECT)}"
    named = {
        "l": items.text,
        "w": f"[$map($l, function($o, $i) {{ {words} }})][$ != '']",
        "k": f"[$map($l, function($o) {{ {field('$o', key)} }})]",
    }
    found = f"$join($w[[0..{elements.MOST_NAMED - 1}]], {quote(elements.SEPARATOR)})"
    apart = f"$count($distinct($k)) = $count($k) ? '' : {quote(elements.repeated(key))}"
    text = let(named, f"$count($w) > 0 ? {found} : {apart}")
    return Code(text, "string", f"what is wrong with {items.label}")


def _count(items: Code) -> Code:
    return Code(f"$count({items.text})", "number", f"the count of {items.label}")


def _same_content(arguments: Sequence[Tree], writer: Writer) -> Code:
    source, copy = (writer.asked(each, "object") for each in arguments[:2])
    encryption = writer.asked(arguments[2], "value")
    stored = f"$a.ServerSideEncryption & {encryption.operand}"
    etag = f"$contains({stored}, {quote(OTHER_KEYS)}) ? '' : 'ETag'"
    compared = f"$k = $p or $contains($k, /{CHECKSUM.pattern}/)"
    apart = f"$lookup({copy.text}, $k) != $v and $not($contains($v, {quote(OF_PARTS)}))"
    each = f"$each($a, function($v, $k) {{ {compared} ? {apart} }})"
    text = let({"a": source.text, "p": etag}, f"$not(true in {each})")
    return Code(text, "boolean", "a condition")


def _first_of(values: Sequence[Code]) -> Code:
    text = refused("none of the values is there: all are null")
    for value in reversed(values):
        if value.kind == "any":
            text = f"{value.operand} != null ? {value.operand} : {text}"
        else:
            text = value.text
    kinds = {value.kind for value in values}
    kind = kinds.pop() if len(kinds) == 1 else "any"
    return Code(f"({text})", kind, "the first that is there")


def _fingerprint(before: Code, items: Code) -> Code:
    error = refused(f"an element of {items.label} has no Key, Size or ETag")
    fields = {"Key": "string", "Size": "number", "ETag": "string"}
    line = "$string($o.Size) & ' ' & $o.ETag & ' ' & $o.Key & '\\n'"
    if any((items.fields or {}).get(name) != kind for name, kind in fields.items()):
        tests = " and ".join(f"$type($o.{name}) = '{kind}'" for name, kind in fields.items())
        line = f"$type($o) = 'object' and {tests} ? {line} : {error}"
    lines = f"$join($map({items.text}, function($o) {{ {line} }}))"
    text = f"$hash({before.operand} & {lines}, 'SHA-256')"
    return Code(text, "string", f"the fingerprint of {items.label}")


def _count_files(items: Code) -> Code:
    label = f"the count of files of {items.label}"
    if (items.fields or {}).get("Key") == "string":
        return Code(f"$count({items.operand}[$substring(Key, -1) != '/'])", "number", label)
    test = "$type($o) = 'object' and $type($o.Key) = 'string'"
    error = refused(f"an element of {items.label} has no Key")
    one = f"{test} ? $t + ($substring($o.Key, -1) = '/' ? 0 : 1) : {error}"
    text = f"$reduce({items.text}, function($t, $o) {{ {one} }}, 0)"
    return Code(text, "number", label)


def _largest(items: Code, key: Tree, writer: Writer) -> Code:
    label = f"the largest of {items.label}"
    if isinstance(key, str) and (items.fields or {}).get(key) == "number":
        return Code(f"$max([0, {field(items.operand, key)}])", "number", label)
    return _reduced(items, key, writer, "({0} > $t ? {0} : $t)", label)


def _sum(items: Code, key: Tree, writer: Writer) -> Code:
    return _reduced(items, key, writer, "$t + {0}", f"a sum over {items.label}")


def _reduced(items: Code, key: Tree, writer: Writer, each: str, label: str) -> Code:
    """Write a reduction of numbers in ``each`` object, beginning with 0."""
    value, test = "$lookup($o, $k)", "$type($k) = 'string' and $type($o) = 'object' and "
    if isinstance(key, str):
        value, test = (
            field("$o", key),
            "" if items.fields is not None else "$type($o) = 'object' and ",
        )
    following = each.format(value)
    error = refused(f"an element of {items.label} has no such number")
    if isinstance(key, str) and (items.fields or {}).get(key) == "number":
        text = f"$reduce({items.text}, function($t, $o) {{ {following} }}, 0)"
        return Code(text, "number", label)
    number = f"{test}$type({value}) = 'number' ? {following} : {error}"
    text = f"$reduce({items.text}, function($t, $o) {{ {number} }}, 0)"
    if not isinstance(key, str):
        text = let({"k": writer.asked(key, "value").text}, text)
    return Code(text, "number", label)


def _numbered(items: Code, key: Tree, writer: Writer) -> Code:
    label = f"{items.label} with a number"
    if not isinstance(key, str):
        test = "$type($o) = 'object' and $type($lookup($o, $k)) = 'number'"
        text = f"[$filter({items.text}, function($o) {{ {test} }})]"
        return Code(let({"k": writer.asked(key, "string").text}, text), "array", label)
    fields: Mapping[str, Kind] = {**(items.fields or {}), key: "number"}
    test = f"$type({field('$o', key)}) = 'number'"
    if items.fields is None:
        test = f"$type($o) = 'object' and {test}"
    text = f"[$filter({items.text}, function($o) {{ {test} }})]"
    return Code(text, "array", label, fields=fields)


def _where(node: Apply, writer: Writer) -> Code:
    listed, key, op, value = node.arguments
    if not isinstance(key, str) or not isinstance(op, str) or op not in OPERATORS:
        raise UnsupportedError([f"{node!r}: the key and the comparison must be plain text"])
    items, own = writer.asked(listed, "array"), field("$o", key)
    is_equality = op in ("eq", "ne")
    other = writer.asked(value, "value" if is_equality else "number")
    fields: dict[str, Kind] = dict(items.fields or {})
    tests = [] if items.fields is not None else ["$type($o) = 'object'"]
    if op == "ne":
        tests.append(f"$exists({own})")
    elif not is_equality and fields.get(key) != "number":
        tests.append(f"$type({own}) = 'number'")
        fields[key] = "number"
    # Unless it is a number, the bound fails the state, even if the list is empty.
    is_wrong = not is_equality and (isinstance(value, bool) or not isinstance(value, int | float))
    held = "$w" if isinstance(value, Expression) or is_wrong else other.operand
    tests.append(f"{own} {OPERATORS[op]} {held}")
    text = f"[$filter({items.text}, function($o) {{ {' and '.join(tests)} }})]"
    if held == "$w":
        text = let({"w": other.text}, text)
    return Code(text, "array", f"some of {items.label}", fields=fields)


def _difference(items: Code, others: Code) -> Code:
    apart = "$append($a[$not($ in $b)], $b[$not($ in $a)])[[0..2]]"
    named = {"a": _sized(items), "b": _sized(others)}
    return Code(let(named, f"$join({apart}, ', ') & ''"), "string", "the objects that differ")


def _picked(items: Code, asked: Sequence[Tree]) -> Code:
    pattern, every, last = asked
    if not isinstance(pattern, str) or not isinstance(every, int) or not isinstance(last, int):
        raise UnsupportedError(["the pattern, every and last of a choice must be known before"])
    error = refused(f"an element of {items.label} has no Prefix")
    text = f"$type($o) = 'object' and $type($o.Prefix) = 'string' ? $o.Prefix : {error}"
    left = "$count($a) - 1 - $i"
    tests = [f"({left}) % {every} = 0"] if every > 1 else []
    tests += [f"{left} < {last * every}"] if last else []
    later = "$n($a) > $n($b) or $n($a) = $n($b) and $a.Prefix > $b.Prefix"
    order = f"$match($o.Prefix, /{LAST_NUMBER}/)[0].groups[0]"
    named = {
        "p": f"function($o) {{ {text} }}",
        "n": f"function($o) {{ ($m := {order}; $exists($m) ? $number($m) : -1) }}",
        "l": f"[$filter({items.text}, function($o) {{ $contains($p($o), /{pattern}/) }})]",
        # Not every implementation sorts stably (jsonata-python does not): of equals, by name.
        "s": f"[$sort($l, function($a, $b) {{ {later} }})]",
    }
    kept = f"[$filter($s, function($o, $i, $a) {{ {' and '.join(tests)} }})]" if tests else "$s"
    return Code(let(named, kept), "array", f"some of {items.label}", fields={"Prefix": "string"})


def _top(asked: Sequence[Tree], writer: Writer) -> Code:
    items, key, direction, count = asked
    if not isinstance(key, str) or direction not in ("max", "min") or not isinstance(count, int):
        raise UnsupportedError(["the key, direction and count of a choice must be known before"])
    listed = _numbered(writer.asked(items, "array"), key, writer)
    later = "<" if direction == "max" else ">"
    left, right = field("$a.o", key), field("$b.o", key)
    order = f"{left} {later} {right} or {left} = {right} and $a.i > $b.i"
    named = {
        "l": f"[$map({listed.text}, function($o, $i) {{ {{'o': $o, 'i': $i}} }})]",
        # Of equals, by place: see above.
        "s": f"[$sort($l, function($a, $b) {{ {order} }})]",
        "t": f"[$filter($s, function($o, $i) {{ $i < {count} }})]",
    }
    kept = "[$sort($t, function($a, $b) { $a.i > $b.i }).o]"
    return Code(let(named, kept), "array", f"some of {listed.label}", fields=listed.fields)


def _tag(items: Code, key: Tree, writer: Writer) -> Code:
    name = writer.asked(key, "string").text
    test = "$type($o) = 'object' and $o.Key = {} and $type($o.Value) = 'string'"
    values = "[$filter({}, function($o) {{ {} }}).Value, ''][0]"
    if isinstance(key, str):
        text = values.format(items.text, test.format(name))
    else:
        text = let({"l": items.text, "k": name}, values.format("$l", test.format("$k")))
    return Code(text, "string", f"a tag of {items.label}")


def _sized(items: Code) -> str:
    """Write a list of texts: the key and the size of each object."""
    fields, row = items.fields or {}, "Key & ' ' & Size"
    if (fields.get("Key"), fields.get("Size")) != ("string", "number"):
        error = refused(f"an element of {items.label} has no Key, or no Size")
        row = f"$type($) = 'object' and $type(Key) = 'string' and $type(Size) = 'number' ? {row}"
        row = f"{row} : {error}"
    return f"[{items.operand}.({row})]"
