"""Checks of the values that expressions give to a state's fields.

moto 5.2.5 shows Python's types in their causes, and fails a bad Timestamp as `States.Runtime`,
which nothing catches. `tests/local/engine/test_failures.py` fails without this module.
"""

from __future__ import annotations

import json
from typing import Any

from moto.stepfunctions.parser.asl.component.common.string.string_expression import StringJSONata
from moto.stepfunctions.parser.asl.component.eval_component import EvalComponent
from moto.stepfunctions.parser.asl.component.state.exec.state_map.items.items import ItemsJSONata
from moto.stepfunctions.parser.asl.component.state.exec.state_map.state_map import StateMap
from moto.stepfunctions.parser.asl.component.state.wait.wait_function.timestamp import Timestamp

from orchestration.local.engine.failures import query_failure
from orchestration.local.engine.jsonata import check_type
from orchestration.local.engine.seams import replace


class _InputItems(EvalComponent):
    """The items of a Map state that names none: its input."""

    def _eval_body(self, env: Any) -> None:
        value = env.stack[-1]
        if not isinstance(value, list):
            written = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
            raise query_failure(env, f"Map state input must be an array but was: {written}", None)


def _items(self: Any, env: Any) -> None:
    self.string_jsonata.eval(env=env)
    check_type(env, self.string_jsonata.expression, "array")


def _with_items(from_state_props: Any) -> Any:
    def read(self: Any, state_props: Any) -> None:
        from_state_props(self, state_props)
        if not (self._is_language_query_jsonpath() or self.items or self.item_reader):
            self.items = _InputItems()

    return read


def _timestamp_failure(create: Any) -> Any:
    def failure(self: Any, env: Any, timestamp_str: str) -> Any:
        if not isinstance(self.string, StringJSONata):
            return create(self, env, timestamp_str)
        cause = (
            "The Timestamp field cannot be parsed as an ISO-8601 extended offset date-time format "
            f"string: {timestamp_str}"
        )
        return query_failure(env, cause, "Timestamp").failure_event

    return failure


def install() -> None:
    """Make the engine check values as AWS does."""
    replace(ItemsJSONata, "_eval_body", _items)
    replace(StateMap, "from_state_props", _with_items(StateMap.from_state_props))
    replace(Timestamp, "_create_failure_event", _timestamp_failure(Timestamp._create_failure_event))
