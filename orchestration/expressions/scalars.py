"""Scalars as text, as JSONata writes them."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal

from orchestration.errors import ExpressionError

_JAVASCRIPT = Context(prec=15, rounding=ROUND_HALF_UP)


def text(value: object) -> str:
    """A scalar as text, as JSONata's ``$string`` writes it (numbers with 15 significant digits)."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _number_text(value)
    raise ExpressionError(f"expected text, a number, true or false, got {value!r}")


def _number_text(value: float) -> str:
    # ECMAScript Number::toString over the value rounded to 15 digits (toPrecision: halves away from
    # zero), as JSONata 2 does: https://docs.jsonata.org/string-functions#string
    try:
        rounded = float(_JAVASCRIPT.create_decimal(Decimal(float(value))))
    except OverflowError:  # a whole number beyond the largest double
        rounded = math.inf
    if not math.isfinite(rounded):
        raise ExpressionError(f"expected a number that JSON can hold, got {value!r:.50}")
    sign, digits, exponent = Decimal(repr(rounded)).as_tuple()
    whole = "".join(map(str, digits)).lstrip("0")
    if not whole:
        return "0"
    return ("-" if sign else "") + _place(whole.rstrip("0"), len(whole) + int(exponent))


def _place(digits: str, point: int) -> str:
    if len(digits) <= point <= 21:
        return digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{tail}e{point - 1:+d}"
