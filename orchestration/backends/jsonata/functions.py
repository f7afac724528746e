"""The functions of the expression language in JSONata.

Where a text begins or ends with a literal, what a function makes of that part is known before the
run, and is written as the literal it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from orchestration.backends.jsonata.code import Code, let, present, refused, scalar, sure
from orchestration.backends.jsonata.writing import checked, field
from orchestration.expressions import Apply, Join, Tree, join
from orchestration.expressions.nodes import Function

_SCHEME = "s3://"
Rendered = Callable[[Tree], Code]


def call(node: Apply, rendered: Rendered) -> Code:
    """A function applied to arguments."""
    arguments = node.arguments
    match node.function:
        case Function.HASH:
            value = sure(rendered(arguments[0]), "string").text
            return Code(f"$substring($hash({value}, 'SHA-256'), 0, 12)", "string", "a hash")
        case Function.COUNT:
            items = rendered(arguments[0])
            return Code(
                f"$count({sure(items, 'array').text})", "number", f"the count of {items.label}"
            )
        case Function.SUM:
            return _sum(rendered(arguments[0]), arguments[1], rendered)
        case Function.REMOVE_PREFIX:
            return _remove_prefix(rendered(arguments[0]), rendered(arguments[1]))
        case Function.URL_PATH:
            # encodeURIComponent leaves alone what evaluate() does, but for slashes.
            value = sure(rendered(arguments[0]), "string").text
            return Code(f"$replace($encodeUrlComponent({value}), '%2F', '/')", "string", "a path")
        case Function.DIRECTORY:
            return _directory(arguments[0], rendered)
        case Function.S3_BUCKET:
            return _bucket(arguments[0], rendered)
        case Function.S3_KEY:
            return _key(arguments[0], rendered)
        case Function.TEXT:
            return rendered(Join((arguments[0],)))  # type: ignore[arg-type]  # a join of any tree renders
        case _:
            assert_never(node.function)


def _sum(items: Code, key: Tree, rendered: Rendered) -> Code:
    value, test = "$lookup($o, $k)", "$type($k) = 'string' and $type($o) = 'object'"
    if isinstance(key, str):
        value, test = field("$o", key), "$type($o) = 'object'"
    error = refused(f"an element of {items.label} has no such number")
    number = f"{test} and $type({value}) = 'number' ? $t + {value} : {error}"
    text = f"$reduce({sure(items, 'array').text}, function($t, $o) {{ {number} }}, 0)"
    if not isinstance(key, str):
        text = let({"k": present(rendered(key)).text}, text)
    return Code(text, "number", f"a sum over {items.label}")


def _remove_prefix(value: Code, prefix: Code) -> Code:
    error = refused(f"{value.label} does not start with {prefix.label}")
    kept = f"$substring($v, 0, $length($p)) = $p ? $substring($v, $length($p)) : {error}"
    bound = {"v": sure(value, "string").text, "p": sure(prefix, "string").text}
    return Code(let(bound, kept), "string", value.label)


def _directory(uri: Tree, rendered: Rendered) -> Code:
    last = uri.parts[-1] if isinstance(uri, Join) and uri.parts else uri
    if isinstance(last, str) and (last or not isinstance(uri, Join)):
        slash = "" if last.endswith("/") else "/"
        return rendered(join(*uri.parts, slash) if isinstance(uri, Join) else last + slash)
    code = rendered(uri)
    text = let({"v": sure(code, "string").text}, "$substring($v, -1) = '/' ? $v : $v & '/'")
    return Code(text, "string", code.label)


def _bucket(uri: Tree, rendered: Rendered) -> Code:
    rest = _after_scheme(uri)
    if isinstance(rest, str):
        return rendered(rest.partition("/")[0])
    if rest is not None:
        first = rest.parts[0] if rest.parts else ""
        if (
            isinstance(first, str)
            and "/" in first
            and all(_is_scalar(rendered(p)) for p in rest.parts)
        ):
            return rendered(first.partition("/")[0])
        return Code(f"$substringBefore({rendered(rest).text}, '/')", "string", "a bucket")
    return _part(uri, "$substringBefore($substring($v, 5), '/')", rendered)


def _is_scalar(part: Code) -> bool:
    """Whether leaving a part out leaves no error out."""
    return scalar(part) is part


def _key(uri: Tree, rendered: Rendered) -> Code:
    rest = _after_scheme(uri)
    if isinstance(rest, str):
        return rendered(rest.partition("/")[2])
    if rest is not None:
        first = rest.parts[0] if rest.parts else ""
        if isinstance(first, str) and "/" in first:
            return rendered(join(first.partition("/")[2], *rest.parts[1:]))
        if any(isinstance(part, str) and "/" in part for part in rest.parts):
            return Code(f"$substringAfter({rendered(rest).text}, '/')", "string", "a key")
        return Code(let({"k": rendered(rest).text}, _KEY_OF_REST), "string", "a key")
    return _part(uri, let({"k": "$substring($v, 5)"}, _KEY_OF_REST), rendered)


_KEY_OF_REST = "$contains($k, '/') ? $substringAfter($k, '/') : ''"


def _part(uri: Tree, part: str, rendered: Rendered) -> Code:
    code = rendered(uri)
    test = f"$substring($v, 0, 5) = '{_SCHEME}'"
    text = checked(sure(code, "string").text, test, part, f"{code.label} is no S3 URI")
    return Code(text, "string", code.label)


def _after_scheme(uri: Tree) -> str | Join | None:
    """What follows ``s3://`` in a text that is known to begin so."""
    if isinstance(uri, Apply) and uri.function is Function.DIRECTORY:
        uri = _with_slash(uri.arguments[0])
    if isinstance(uri, str) and uri.startswith(_SCHEME):
        return uri.removeprefix(_SCHEME)
    if isinstance(uri, Join) and uri.parts:
        first = uri.parts[0]
        if isinstance(first, str) and first.startswith(_SCHEME):
            rest = join(first.removeprefix(_SCHEME), *uri.parts[1:])
            return rest if isinstance(rest, Join) else None
    return None


def _with_slash(uri: Tree) -> Tree:
    """A directory's URI, where its end is known."""
    if isinstance(uri, str):
        return uri.removesuffix("/") + "/"
    if isinstance(uri, Join) and uri.parts and isinstance(uri.parts[-1], str) and uri.parts[-1]:
        return uri if uri.parts[-1].endswith("/") else join(*uri.parts, "/")
    return None
