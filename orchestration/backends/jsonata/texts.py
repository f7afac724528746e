"""The functions on texts: parts of URIs and ARNs, beginnings, and times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from orchestration.backends.jsonata.code import Code, Writer, let
from orchestration.backends.jsonata.locations import SCHEME, after_scheme, key_of, split
from orchestration.backends.jsonata.writing import checked, quote, refused
from orchestration.errors import UnsupportedError
from orchestration.expressions import Apply, Function, Join, Tree, apply, join
from orchestration.refs import times


def _remove_prefix(arguments: Sequence[Tree], writer: Writer) -> Code:
    value, prefix = (writer.asked(each, "string") for each in arguments)
    error = refused(f"{value.label} does not start with {prefix.label}")
    kept = f"$substring($v, 0, $length($p)) = $p ? $substring($v, $length($p)) : {error}"
    return Code(let({"v": value.text, "p": prefix.text}, kept), "string", value.label)


def _time_text(arguments: Sequence[Tree], writer: Writer) -> Code:
    value, (minus_s, format) = writer.asked(arguments[0], "string"), arguments[1:]
    if not isinstance(minus_s, int) or not isinstance(format, str):
        raise UnsupportedError(["the seconds and the format of a time must be known before"])
    parts = [
        quote(each) if isinstance(each, str) else f"$substring($t, {each[0]}, {each[1]})"
        for each in times.pieces(format)
    ]
    error = refused(f"{value.label}: expected a time such as 2027-03-01T06:00:00Z, got", "$v")
    # A date that does not exist, 30 February, is another one once it is read.
    exists = "$substring($fromMillis($m), 0, 19) & 'Z' = $z"
    named = {
        "v": value.text,
        "z": f"$contains($v, 'T') ? $v : $v & '{times.MIDNIGHT}'",
        "m": f"$contains($v, /{times.READ}/) ? $toMillis($z) : {error}",
        "t": f"{exists} ? $fromMillis($m - {minus_s * 1000}) : {error}",
    }
    return Code(let(named, " & ".join(parts)), "string", "a time")


def _url_path(arguments: Sequence[Tree], writer: Writer) -> Code:
    # encodeURIComponent leaves alone what evaluate() does, but for slashes.
    value = writer.asked(arguments[0], "string").text
    return Code(f"$replace($encodeUrlComponent({value}), '%2F', '/')", "string", "a path")


def _directory(arguments: Sequence[Tree], writer: Writer) -> Code:
    uri = arguments[0]
    last = uri.parts[-1] if isinstance(uri, Join) and uri.parts else uri
    if isinstance(last, str) and (last or not isinstance(uri, Join)):
        slash = "" if last.endswith("/") else "/"
        return writer.code(join(*uri.parts, slash) if isinstance(uri, Join) else last + slash)
    value = writer.asked(uri, "string")
    text = let({"v": value.text}, "$substring($v, -1) = '/' ? $v : $v & '/'")
    return Code(text, "string", value.label)


def _bucket(arguments: Sequence[Tree], writer: Writer) -> Code:
    uri = arguments[0]
    rest = after_scheme(uri)
    if rest is None:
        return _part(uri, "$substringBefore($substring($v, 5), '/')", writer)
    if isinstance(rest, str):
        return writer.code(rest.partition("/")[0])
    place = split(rest)
    if place is not None and all(writer.harmless(part) for part in place.path):
        if isinstance(place.head, str):
            return writer.code(place.head.partition("/")[0])
        if place.path:
            return writer.code(apply(Function.S3_BUCKET, join(SCHEME, place.head)))
    return Code(f"$substringBefore({writer.code(rest).text}, '/')", "string", "a bucket")


def _key(arguments: Sequence[Tree], writer: Writer) -> Code:
    uri = arguments[0]
    rest = after_scheme(uri)
    if rest is None:
        return _key_of_text(uri, writer)
    if isinstance(rest, str):
        return writer.code(rest.partition("/")[2])
    place = split(rest)
    if place is None:
        return Code(let({"k": writer.code(rest).text}, _KEY_OF_REST), "string", "a key")
    if place.path or isinstance(place.head, str):
        return writer.code(key_of(place))
    return Code(f"$substringAfter({writer.code(rest).text}, '/')", "string", "a key")


_KEY_OF_REST = "$contains($k, '/') ? $substringAfter($k, '/') : ''"


def _key_of_text(uri: Tree, writer: Writer) -> Code:
    if isinstance(uri, Apply) and uri.function is Function.DIRECTORY:
        # What ends in a slash has one behind the scheme, or nothing there.
        return _part(uri, "$substringAfter($substring($v, 5), '/')", writer)
    return _part(uri, let({"k": "$substring($v, 5)"}, _KEY_OF_REST), writer)


def _part(uri: Tree, part: str, writer: Writer) -> Code:
    value = writer.asked(uri, "string")
    test = f"$substring($v, 0, 5) = '{SCHEME}'"
    message = f"{value.label}: expected an S3 URI (s3://bucket/key), got"
    text = checked(value.text, test, part, message, told="$v")
    return Code(text, "string", value.label)


def _arn_name(arguments: Sequence[Tree], writer: Writer) -> Code:
    value = writer.asked(arguments[0], "string").text
    return Code(f"$split($split({value}, '/')[-1], ':')[-1]", "string", "a name")


TEXTS: Final[Mapping[Function, Callable[[Sequence[Tree], Writer], Code]]] = {
    Function.REMOVE_PREFIX: _remove_prefix,
    Function.TIME_TEXT: _time_text,
    Function.DIRECTORY: _directory,
    Function.URL_PATH: _url_path,
    Function.S3_BUCKET: _bucket,
    Function.S3_KEY: _key,
    Function.ARN_NAME: _arn_name,
}
"""The functions, by their names."""
