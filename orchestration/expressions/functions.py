"""The functions of the expression language in Python, and what they require of their arguments."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast
from urllib.parse import quote

from orchestration.errors import ExpressionError
from orchestration.expressions.elements import misfits
from orchestration.expressions.nodes import SCALARS, Function, Json
from orchestration.expressions.scalars import text
from orchestration.refs import times

_MOST_NAMED: Final = 3
CHECKSUM: Final = re.compile("^Check.*[A-Z0-9]$")
"""Fields of S3's responses that hold a checksum: ``ChecksumSHA256``, and not ``ChecksumType``."""
OF_PARTS: Final = "-"
"""Part of a checksum or an ETag that S3 made of those of the parts of an upload."""
OTHER_KEYS: Final = ":"
"""Part of the names of encryptions under which an ETag is no MD5: ``aws:kms``."""
LAST_NUMBER: Final = "([0-9]{1,15})[^0-9]*$"
"""The last number in a text, in Python and in JSONata."""


def field_of(value: Json, key: str) -> Json:
    """Return a field of an object."""
    if not isinstance(value, Mapping) or key not in value:
        raise ExpressionError(f"no field {key!r} in {value!r}")
    return value[key]


def boolean(value: Json) -> bool:
    """Return a value that must be true or false."""
    if not isinstance(value, bool):
        raise ExpressionError(f"expected true or false, got {value!r}")
    return value


def number(value: Json) -> float:
    """Return a value that must be a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ExpressionError(f"expected a number, got {value!r}")
    return value


def compare(op: str, left: Json, right: Json) -> bool:
    """Compare two values: equality never mixes types, and order is for numbers."""
    if op in ("eq", "ne"):
        same_kind = isinstance(left, bool) == isinstance(right, bool)
        equal = same_kind and left == right
        return equal if op == "eq" else not equal
    a, b = number(left), number(right)
    return {"lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[op]


def _objects(value: Json) -> Sequence[Json]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ExpressionError(f"expected a list, got {value!r}")
    return value


def best(items: Json, key: str, direction: str) -> Json:
    """Return the object whose field is largest or smallest; the first one of equals."""
    candidates = _objects(items)
    if not candidates:
        raise ExpressionError("there is no best of an empty list")
    choose = max if direction == "max" else min
    return choose(candidates, key=lambda item: number(field_of(item, key)))


def _fingerprint(before: Json, items: Json) -> str:
    lines = [plain_text(before)]
    for item in _objects(items):
        size = text(number(field_of(item, "Size")))
        lines.append(
            f"{size} {plain_text(field_of(item, 'ETag'))} {plain_text(field_of(item, 'Key'))}\n"
        )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def plain_text(value: Json) -> str:
    """Return a value that must be text."""
    if not isinstance(value, str):
        raise ExpressionError(f"expected text, got {value!r}")
    return value


def _remove_prefix(value: Json, prefix: Json) -> str:
    whole, start = plain_text(value), plain_text(prefix)
    if not whole.startswith(start):
        raise ExpressionError(f"{whole!r} does not start with {start!r}")
    return whole[len(start) :]


def _difference(items: Json, others: Json) -> str:
    left, right = _sized(items), _sized(others)
    apart = [text for text in left if text not in set(right)]
    apart += [text for text in right if text not in set(left)]
    return ", ".join(apart[:_MOST_NAMED])


def _sized(items: Json) -> list[str]:
    return [
        f"{plain_text(field_of(item, 'Key'))} {text(number(field_of(item, 'Size')))}"
        for item in _objects(items)
    ]


def _same_content(source: Json, copy: Json, encryption: Json) -> bool:
    described, made = _texts(source), _texts(copy)
    stored = described.get("ServerSideEncryption", "") + text(encryption)
    etag = "" if OTHER_KEYS in stored else "ETag"
    return all(
        made.get(name, value) == value or OF_PARTS in value
        for name, value in described.items()
        if name == etag or CHECKSUM.search(name)
    )


def _texts(value: Json) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise ExpressionError(f"expected an object, got {value!r}")
    return {key: each for key, each in value.items() if isinstance(each, str)}


def _url_path(value: Json) -> str:
    return quote(plain_text(value), safe="/-_.!~*'()")


def _time_text(value: Json, minus_s: Json, format: Json) -> str:
    given = plain_text(value)
    written = times.text(given, int(number(minus_s)), plain_text(format))
    if written is None:
        raise ExpressionError(f"expected a time such as 2027-03-01T06:00:00Z, got {given!r}")
    return written


def _s3_parts(value: Json) -> tuple[str, str]:
    uri = plain_text(value)
    if not uri.startswith("s3://"):
        raise ExpressionError(f"expected an S3 URI (s3://bucket/key), got {uri!r}")
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return bucket, key


def _sum(items: Json, key: Json) -> float:
    # Not sum(): from Python 3.12 on it compensates rounding, which JSONata does not.
    total: float = 0
    for item in _objects(items):
        total += number(field_of(item, plain_text(key)))
    return total


def _largest(items: Json, key: Json) -> float:
    return max([0, *(number(field_of(item, plain_text(key))) for item in _objects(items))])


def _count_files(items: Json) -> int:
    keys = [plain_text(field_of(item, "Key")) for item in _objects(items)]
    return sum(not key.endswith("/") for key in keys)


def _picked(items: Json, pattern: Json, every: Json, last: Json) -> list[Json]:
    matching = re.compile(plain_text(pattern))
    prefixes = [(plain_text(field_of(item, "Prefix")), item) for item in _objects(items)]
    matched = [pair for pair in prefixes if matching.search(pair[0])]
    ordered = [
        item for _, item in sorted(matched, key=lambda pair: (_last_number(pair[0]), pair[0]))
    ]
    step, most = int(number(every)), int(number(last))
    kept = ordered[::-1][::step][::-1]
    return kept[-most:] if most else kept


def _last_number(prefix: str) -> int:
    match = re.search(LAST_NUMBER, prefix)
    return int(match[1]) if match else -1


def _top(items: Json, key: Json, direction: Json, count: Json) -> list[Json]:
    listed, name = _numbered(items, key), plain_text(key)
    sign = -1 if direction == "max" else 1
    order = sorted(range(len(listed)), key=lambda at: sign * number(field_of(listed[at], name)))
    return [listed[at] for at in sorted(order[: int(number(count))])]


def _tag(items: Json, key: Json) -> str:
    name = plain_text(key)
    for item in _objects(items):
        if isinstance(item, Mapping) and item.get("Key") == name:
            value = item.get("Value")
            if isinstance(value, str):
                return value
    return ""


def _numbered(items: Json, key: Json) -> list[Json]:
    name = plain_text(key)
    return [item for item in _objects(items) if _finite(item, name)]


def _finite(item: Json, key: str) -> bool:
    value = item.get(key) if isinstance(item, Mapping) else None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(cast(float, value))


def _where(items: Json, key: Json, op: Json, value: Json) -> list[Json]:
    name, comparison = plain_text(key), plain_text(op)
    is_equality = comparison in ("eq", "ne")
    bound = value if is_equality else number(value)

    def holds(own: Mapping[str, Json]) -> bool:
        return (is_equality or _finite(own, name)) and compare(comparison, own[name], bound)

    rows = (item for item in _objects(items) if isinstance(item, Mapping))
    return [item for item in rows if name in item and holds(item)]


def _column(items: Json, key: Json) -> list[Json]:
    values = [field_of(item, plain_text(key)) for item in _objects(items)]
    for value in values:
        if not isinstance(value, SCALARS):
            raise ExpressionError(f"expected text, a number, true, false or null, got {value!r}")
    return values


def _listed(items: Json, key: Json) -> str:
    return ", ".join(plain_text(value) for value in _column(items, key))


def _misfits(items: Json, key: Json, *pairs: Json) -> str:
    texts = [plain_text(part) for part in pairs]
    fields = dict(zip(texts[::2], texts[1::2], strict=True))
    return misfits(_objects(items), plain_text(key), fields)


FUNCTIONS: Final[Mapping[Function, Callable[..., Json]]] = {
    Function.FINGERPRINT: _fingerprint,
    Function.CONTAINS: lambda whole, part: plain_text(part) in plain_text(whole),
    Function.COUNT: lambda items: len(_objects(items)),
    Function.COUNT_FILES: _count_files,
    Function.SUM: _sum,
    Function.LARGEST: _largest,
    Function.NUMBERED: _numbered,
    Function.WHERE: _where,
    Function.PICKED: _picked,
    Function.TOP: _top,
    Function.TAG: _tag,
    Function.DIFFERENCE: _difference,
    Function.REMOVE_PREFIX: _remove_prefix,
    Function.SAME_CONTENT: _same_content,
    Function.URL_PATH: _url_path,
    Function.TIME_TEXT: _time_text,
    Function.DIRECTORY: lambda value: plain_text(value).removesuffix("/") + "/",
    Function.S3_BUCKET: lambda uri: _s3_parts(uri)[0],
    Function.S3_KEY: lambda uri: _s3_parts(uri)[1],
    Function.ARN_NAME: lambda arn: re.split("[/:]", plain_text(arn))[-1],
    Function.TEXT: cast("Callable[..., Json]", text),
    Function.COLUMN: _column,
    Function.LISTED: _listed,
    Function.MISFITS: _misfits,
}
"""By their names, but for a hash and the first of several values, which need more of a run."""
