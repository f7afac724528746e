"""The fields of a state: what their texts say, and which of them is being evaluated.

moto 5.2.5 takes some JSON strings as they are written, escapes included, and does not know which
field holds the expression that failed; AWS names it: `Output/model`, `Arguments/Items[2]`.
`tests/local/engine/test_failures.py` and `test_payloads.py` there fail without this
module.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from moto.stepfunctions.parser.asl.antlr.runtime.ASLLexer import ASLLexer
from moto.stepfunctions.parser.asl.antlr.runtime.ASLParser import ASLParser
from moto.stepfunctions.parser.asl.antlt4utils.antlr4utils import is_terminal
from moto.stepfunctions.parser.asl.component.common import outputdecl, parargs
from moto.stepfunctions.parser.asl.component.common.assign import (
    assign_decl,
    assign_template_binding,
    assign_template_value_array,
)
from moto.stepfunctions.parser.asl.component.common.jsonata import (
    jsonata_template_binding,
    jsonata_template_value_array,
)
from moto.stepfunctions.parser.asl.component.common.string import string_expression
from moto.stepfunctions.parser.asl.component.common.timeouts import heartbeat, timeout
from moto.stepfunctions.parser.asl.component.state.choice import state_choice
from moto.stepfunctions.parser.asl.component.state.exec.state_map import (
    item_selector,
    max_concurrency,
    tolerated_failure,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_map.items import items
from moto.stepfunctions.parser.asl.component.state.fail import cause_decl, error_decl
from moto.stepfunctions.parser.asl.component.state.wait.wait_function import seconds, timestamp
from moto.stepfunctions.parser.asl.parse import preprocessor

from orchestration.local.engine.seams import replace

_FIELDS: list[tuple[Any, str]] = [
    (assign_decl.AssignDecl, "Assign"),
    (outputdecl.Output, "Output"),
    (parargs.ArgumentsJSONataTemplateValueObject, "Arguments"),
    (parargs.ArgumentsStringJSONata, "Arguments"),
    (items.ItemsArray, "Items"),
    (items.ItemsJSONata, "Items"),
    (item_selector.ItemSelector, "ItemSelector"),
    (max_concurrency.MaxConcurrencyJSONata, "MaxConcurrency"),
    (tolerated_failure.ToleratedFailureCountStringJSONata, "ToleratedFailureCount"),
    (tolerated_failure.ToleratedFailurePercentageStringJSONata, "ToleratedFailurePercentage"),
    (timeout.TimeoutSecondsJSONata, "TimeoutSeconds"),
    (heartbeat.HeartbeatSecondsJSONata, "HeartbeatSeconds"),
    (seconds.SecondsJSONata, "Seconds"),
    (timestamp.Timestamp, "Timestamp"),
    (error_decl.Error, "Error"),
    (cause_decl.Cause, "Cause"),
]


_ESCAPES = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})
_PATHS = (
    ASLParser.String_jsonpathContext,
    ASLParser.String_context_pathContext,
    ASLParser.String_variable_sampleContext,
)


class _Path(threading.local):
    """The fields around the one that a thread evaluates."""

    def __init__(self) -> None:
        self.names: list[str] = []


_PATH = _Path()


def current() -> str | None:
    """Return the field that is being evaluated."""
    path = ""
    for name in _PATH.names:
        path += name if name.startswith("[") or not path else f"/{name}"
    return path or None


@contextmanager
def inside(name: str) -> Iterator[None]:
    """Evaluate a field, or an element of one."""
    _PATH.names.append(name)
    try:
        yield
    finally:
        _PATH.names.pop()


def _named(method: Any, name: str | None) -> Any:
    def evaluate(self: Any, env: Any) -> Any:
        with inside(name or self.identifier):
            return method(self, env)

    return evaluate


def _array(self: Any, env: Any) -> None:
    elements = []
    for index, value in enumerate(self.values):
        with inside(f"[{index}]"):
            value.eval(env)
        elements.append(env.stack.pop())
    env.stack.append(elements)


def _choices(self: Any, env: Any) -> None:
    for index, rule in enumerate(self.choices_decl.rules):
        with inside("Choices"), inside(f"[{index}]"):
            rule.eval(env)
        if env.stack.pop() is True:
            env.stack.append(rule.next_stmt.name)
            return
    if self.default_state is None:
        raise RuntimeError(f"No branching option reached in state {self.name}")
    env.stack.append(self.default_state.state_name)


def _text(parser_rule_context: Any) -> str:
    """Return the characters that a JSON string stands for."""
    written: str = parser_rule_context.getText()
    if not (written.startswith('"') and written.endswith('"')):
        return written
    text: str = json.loads(written, strict=False)
    return text


def _text_or_null(parser_rule_context: Any) -> str | None:
    if is_terminal(parser_rule_context, ASLLexer.NULL):
        return None
    if isinstance(parser_rule_context, _PATHS):
        # What reads a path decodes its escapes itself.
        path: str = parser_rule_context.getText()
        return path[1:-1]
    return _text(parser_rule_context)


def _intrinsic(_: Any, ctx: Any) -> Any:
    # The language of these functions has escapes of its own for what ends a line.
    derivation = _text(ctx.STRINGINTRINSICFUNC()).translate(_ESCAPES)
    function, _tree = preprocessor.IntrinsicParser.parse(derivation)
    return string_expression.StringIntrinsicFunction(derivation, function)


def install() -> None:
    """Make the engine read strings as JSON and follow the fields it evaluates."""
    replace(preprocessor.Preprocessor, "_inner_string_of", staticmethod(_text_or_null))
    replace(preprocessor, "from_string_literal", _text)
    replace(preprocessor.Preprocessor, "visitString_intrinsic_function", _intrinsic)
    for owner, name in _FIELDS:
        replace(owner, "_eval_body", _named(owner._eval_body, name))
    for binding in (
        assign_template_binding.AssignTemplateBinding,
        jsonata_template_binding.JSONataTemplateBinding,
    ):
        replace(binding, "_eval_body", _named(binding._eval_body, None))
    for array in (
        assign_template_value_array.AssignTemplateValueArray,
        jsonata_template_value_array.JSONataTemplateValueArray,
    ):
        replace(array, "_eval_body", _array)
    replace(state_choice.StateChoice, "_eval_state", _choices)
