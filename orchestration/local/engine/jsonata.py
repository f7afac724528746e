"""JSONata for the engine: `jsonata-python` with the functions that AWS adds.

moto 5.2.5 writes variables into the text of an expression, without escaping quotes, and needs a
Java machine to evaluate it. Here an expression is compiled once and evaluated with bound variables.
`tests/backends/test_jsonata.py` compares it with the reference implementation.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import random
import threading
import uuid
from collections.abc import Mapping
from typing import Any

import jsonata
from jsonata.functions import Functions
from jsonata.utils import Utils
from moto.stepfunctions.parser.asl.component.common.query_language import QueryLanguageMode
from moto.stepfunctions.parser.asl.component.common.string import string_expression
from moto.stepfunctions.parser.asl.component.state.choice.comparison import comparison

from orchestration.backends.jsonata.syntax import parse
from orchestration.local.engine import fields
from orchestration.local.engine.failures import query_failure
from orchestration.local.engine.seams import replace

_ALGORITHMS = {
    "MD5": "md5",
    "SHA-1": "sha1",
    "SHA-256": "sha256",
    "SHA-384": "sha384",
    "SHA-512": "sha512",
}
_LONGEST_RANGE = 1000
_LARGEST_EXACT = 2**53


_TYPES = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


class JsonataError(ValueError):
    """An expression could not be compiled or evaluated."""


class Undefined(JsonataError):
    """An expression has no value."""


class Unsupported(JsonataError):
    """An expression has a value that JSON cannot hold."""


def evaluate(expression: str, variables: Mapping[str, Any]) -> Any:
    """Evaluate an expression with the values of its variables (named without `$`)."""
    bindings = {
        name: Utils.NULL_VALUE if value is None else value for name, value in variables.items()
    }
    with _ONE_AT_A_TIME:
        try:
            compiled = _compile(expression)
            # The library keeps "the expression being evaluated" per thread, and takes the last
            # one that was compiled there.
            jsonata.Jsonata.CURRENT.jsonata = compiled
            value = compiled.evaluate(None, bindings)
        except RecursionError as error:
            raise JsonataError("it recurses too deeply") from error
        except Exception as error:
            raise JsonataError(_message(error)) from error
    if value is None:
        raise Undefined("returned nothing (undefined)")
    return _json_value(value)


def syntax_error(expression: str) -> str | None:
    """Return what is wrong with the syntax of an expression, if anything is."""
    with _ONE_AT_A_TIME:
        try:
            _compile(expression)
        except Exception as error:
            return _message(error)
    return None


def _message(error: Exception) -> str:
    code = getattr(error, "error", None)
    text = str(error) or type(error).__name__
    return f"{code}: {text}" if code else text


# The library's parser and evaluator share state between expressions.
_ONE_AT_A_TIME = threading.RLock()


@functools.lru_cache(maxsize=4096)
def _compile(expression: str) -> jsonata.Jsonata:
    parse(expression)  # The library takes the operators of JSONata 2.1, too.
    compiled = jsonata.Jsonata(expression)
    # Tells null from undefined.
    compiled.set_output_convert_nulls(False)
    for name, function in _FUNCTIONS.items():
        compiled.register_lambda(name, function)
    return compiled


def _json_value(value: Any) -> Any:
    """Return a JSON value that shares nothing with the variables it came from."""
    if value is None or value is Utils.NULL_VALUE:
        return None
    if isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise JsonataError("the result is not a finite number")
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, Mapping):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(item) for item in value]
    raise Unsupported("returned an unsupported result type")


def _string(value: Any, *arguments: Any) -> str:
    """Write whole numbers, negative zero among them, as the language does: 2 and 0, not 2.0."""
    return str(_library_string(_with_whole_numbers(value), *arguments))


def _with_whole_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST_EXACT:
        return int(value)
    if isinstance(value, dict):
        return {key: _with_whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_whole_numbers(item) for item in value]
    return value


_library_string = replace(Functions, "_string", staticmethod(_string))


def _partition(values: Any, size: Any, *_: Any) -> Any:
    if not isinstance(values, list) or not isinstance(size, (int, float)) or size < 1:
        raise JsonataError("$partition takes an array and a size of 1 or more")
    step = int(size)
    return [values[start : start + step] for start in range(0, len(values), step)]


def _range(first: Any, last: Any, step: Any, *_: Any) -> Any:
    if not step:
        raise JsonataError("$range takes a step other than 0")
    count = int((last - first) // step) + 1
    if count > _LONGEST_RANGE:
        raise JsonataError(f"$range makes at most {_LONGEST_RANGE} numbers")
    return [first + index * step for index in range(max(0, count))]


def _hash(content: Any, algorithm: Any = None, *_: Any) -> str:
    if not isinstance(content, str) or algorithm not in _ALGORITHMS:
        raise JsonataError(f"$hash takes a string and one of {', '.join(_ALGORITHMS)}")
    return hashlib.new(_ALGORITHMS[algorithm], content.encode()).hexdigest()


def _random(seed: Any = None, *_: Any) -> float:
    # The language's $random is not for secrets either.
    return random.random() if seed is None else random.Random(seed).random()  # noqa: S311


def _parse(text: Any, *_: Any) -> Any:
    if not isinstance(text, str):
        raise JsonataError("$parse takes a string of JSON")
    # Not what Python takes for JSON beyond the standard.
    value = json.loads(text, parse_constant=_no_constant, parse_int=_integer)
    return Utils.NULL_VALUE if value is None else value


def _no_constant(name: str) -> Any:
    raise JsonataError(f"$parse takes a string of JSON, which has no {name}")


def _integer(digits: str) -> float:
    value = float(digits)
    return int(digits) if abs(value) <= _LARGEST_EXACT else value


def _eval(*_: Any) -> Any:
    raise JsonataError("$eval is not available in Step Functions")


_FUNCTIONS = {
    "partition": _partition,
    "range": _range,
    "hash": _hash,
    "random": _random,
    "uuid": lambda *_: str(uuid.uuid4()),
    "parse": _parse,
    "eval": _eval,
}


def _variables(env: Any) -> dict[str, Any]:
    store = env.variable_store
    return {**store._outer_scope, **store._inner_scope}


def _states(env: Any) -> dict[str, Any]:
    data = env.states._states_data
    states = {"input": data["input"], "context": data["context"]}
    # Absent, not null, where a state has no result or no error.
    for name in ("result", "errorOutput"):
        if data.get(name) is not None:
            states[name] = data[name]
    return states


def _evaluate_in(env: Any, expression: str, variables: Mapping[str, Any]) -> None:
    try:
        env.stack.append(evaluate(expression, variables))
    except (Undefined, Unsupported) as error:
        raise expression_failure(env, expression, f"{error}.") from error
    except JsonataError as error:
        why = f"threw an error during evaluation. {error}"
        raise expression_failure(env, expression, why) from error


def expression_failure(env: Any, expression: str, why: str) -> Exception:
    """Return the failure of a state one of whose expressions has no value, or a wrong one."""
    name = fields.current()
    where = f" specified for the field '{name}'" if name else ""
    return query_failure(env, f"The JSONata expression '{expression}'{where} {why}", name)


def _string_jsonata(self: Any, env: Any) -> None:
    _evaluate_in(env, self.expression, {**_variables(env), "states": _states(env)})


def _variable_sample(self: Any, env: Any) -> None:
    variables = _variables(env)
    if self.query_language_mode == QueryLanguageMode.JSONata:
        variables["states"] = _states(env)
    _evaluate_in(env, self.expression, variables)


def _condition(self: Any, env: Any) -> None:
    with fields.inside("Condition"):
        self.string_jsonata.eval(env=env)
        check_type(env, self.string_jsonata.expression, "boolean")


def check_type(env: Any, expression: str, expected: str) -> None:
    """Fail a state whose expression has a value of another type than its field takes."""
    value = env.stack[-1]
    actual = _TYPES[type(value)]
    if actual != expected:
        raise expression_failure(
            env,
            expression,
            f"returned an unexpected result type. Expected '{expected}', but was '{actual}' "
            f"for value: {json.dumps(value, separators=(',', ':'), ensure_ascii=False)}",
        )


def install() -> None:
    """Make the engine evaluate with this module."""
    replace(string_expression.StringJSONata, "_eval_body", _string_jsonata)
    replace(string_expression.StringVariableSample, "_eval_body", _variable_sample)
    replace(comparison.ConditionStringJSONata, "_eval_body", _condition)
