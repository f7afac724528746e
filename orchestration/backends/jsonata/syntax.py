"""The syntax of JSONata 2.0, which Step Functions has; the library parses that of 2.1.

https://docs.aws.amazon.com/step-functions/latest/dg/transforming-data.html names 2.0.6. What 2.1.0
has besides are the two operators below: ``src/parser.js`` of https://github.com/jsonata-js/jsonata,
``v2.0.6`` compared with ``v2.2.2`` (November 2026); the functions are the same.
"""

from __future__ import annotations

from typing import Any, Final

_LATER: Final = {"??": "$exists(a) ? a : b", "?:": "a ? a : b"}


class LaterOperator(ValueError):
    """An expression has an operator that came with JSONata 2.1."""


def parse(source: str) -> Any:
    """Return the tree of an expression."""
    from jsonata.parser import Parser

    parser = Parser()
    for operator, instead in _LATER.items():
        parser.symbol_table[operator].led = _refusal(operator, instead)
    return parser.parse(source)


def _refusal(operator: str, instead: str) -> Any:
    # The same characters stand in signatures (`<n?:n>`) and in regular expressions, so that only
    # the place where the operator joins two operands tells.
    def led(_: Any) -> None:
        raise LaterOperator(
            f"{operator} came with JSONata 2.1, and Step Functions has 2.0; write {instead}"
        )

    return led
