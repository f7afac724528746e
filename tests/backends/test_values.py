"""A value that is needed twice is assigned once, where what it is made of is known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from orchestration.backends import stepfunctions
from orchestration.expressions import (
    Best,
    Compare,
    Field,
    Item,
    Result,
    Tree,
    apply,
    join,
    parameter,
)
from orchestration.expressions.nodes import Function
from orchestration.graph import Choose, ForEach, Graph, Output, Require, Step
from tests.backends import definitions
from tests.backends.workflows import TOKEN, guarded, loop, put, read, workflow

BUCKET_OF_TOKEN = apply(Function.S3_BUCKET, parameter("token"))


def states(*steps: Step, **more: Any) -> dict[str, Mapping[str, Any]]:
    rendered = stepfunctions.render(workflow(*steps, parameters=(TOKEN,), **more))
    assert definitions.problems(rendered) == []
    return definitions.states(rendered)


def assigned(state: Mapping[str, Any]) -> dict[str, Any]:
    rules = [rule.get("Assign", {}) for rule in state.get("Choices", [])]
    return {name: v for each in (state.get("Assign", {}), *rules) for name, v in each.items()}


def writing(name: str, *after: str, body: Tree = BUCKET_OF_TOKEN) -> Step:
    return put(name, body, after=after)


def gate(name: str, *after: str) -> Require:
    condition = Compare("ne", parameter("token"), "stop")
    return Require(name=name, condition=condition, error="Stopped", cause="no", after=after)


def test_what_parameters_give_is_assigned_once_the_input_is_checked() -> None:
    made = states(writing("one"), writing("two", "one"))
    assert "expected an S3 URI" in assigned(made["CheckInput"])["token__Bucket"]
    assert made["one"]["Arguments"]["Body"]["value"] == "{% $token__Bucket %}"
    assert made["two"]["Arguments"]["Body"]["value"] == "{% $token__Bucket %}"


def test_what_is_needed_once_stays_where_it_is() -> None:
    made = states(writing("one"))
    assert assigned(made["CheckInput"]) == {}
    assert "expected an S3 URI" in made["one"]["Arguments"]["Body"]["value"]


def test_no_check_comes_before_a_step_that_may_end_the_run_on_purpose() -> None:
    made = states(gate("gate"), writing("one", "gate"), writing("two", "one"))
    assert assigned(made["CheckInput"]) == {}
    assert list(assigned(made["gate"])) == ["token__Bucket"]


def test_what_cannot_fail_is_assigned_at_once() -> None:
    digest = apply(Function.HASH, parameter("token"))
    made = states(gate("gate"), writing("one", "gate", body=digest), writing("two", body=digest))
    assert list(assigned(made["CheckInput"])) == ["token__Hash"]


def test_what_only_a_branch_needs_is_checked_there() -> None:
    branch = Choose(
        name="choose",
        condition=Compare("eq", parameter("token"), "x"),
        then=Graph((writing("one"), writing("two", "one"))),
        otherwise=Graph(),
    )
    made = states(branch)
    assert assigned(made["CheckInput"]) == {}
    assert "expected an S3 URI" in made["one"]["Arguments"]["Body"]["value"]


def test_the_best_of_a_list_is_assigned_when_the_list_is_whole() -> None:
    best = Best(Result("each", "items"), "size", "max")
    size = read("each.size", Field(Item(), "key"), {"size": Output(("n",), kind="number")})
    made = loop("each", [{"key": "a"}], size)
    collecting = ForEach(
        name="each",
        items=made.items,
        body=made.body,
        collect={"size": Result("each.size", "size"), "key": Field(Item(), "key")},
        max_concurrency=2,
    )
    enough = Compare("ge", Field(best, "size"), 3)
    needed = Require(
        name="enough", condition=enough, error="Small", cause=join(Field(best, "size"))
    )
    rendered = states(collecting, needed)
    assert list(assigned(rendered["each-CheckErrors"])) == ["each__Best"]
    assert rendered["enough"]["Choices"][0]["Condition"] == "{% $each__Best.size >= 3 %}"
    assert rendered["enough-Small"]["Cause"] == "{% $string($each__Best.size) %}"


def test_what_an_element_gives_is_assigned_in_each_iteration() -> None:
    key = apply(Function.HASH, Field(Item(), "key"))
    made = loop("each", [{"key": "a"}, {"key": 1}], put("each.again", key, key=key))
    rendered = states(made)
    assert "$states.input.key" in assigned(rendered["each-Item"])["each__Hash"]
    assert rendered["each-again"]["Arguments"]["Key"] == "{% $each__Hash %}"


def test_a_response_gives_values_together_with_the_outputs() -> None:
    digest = apply(Function.HASH, Result("one", "etag"))
    made = states(put("one"), writing("two", body=digest), writing("three", "two", body=digest))
    assert "$states.result.ETag" in assigned(made["one"])["one__Hash"]
    assert made["three"]["Arguments"]["Body"]["value"] == "{% $one__Hash %}"


def test_an_outer_variable_is_read_inside_and_its_name_is_not_given_twice() -> None:
    digest = apply(Function.HASH, Result("inner", "etag"))
    body = Graph(
        (put("inner"), writing("first", body=digest), writing("more", "first", body=digest))
    )
    made = states(
        guarded("share", body),
        writing("last", body=digest),
        writing("end", "last", body=digest),
    )
    names = json.dumps([sorted(assigned(state)) for state in made.values()])
    assert names.count('"inner__Hash"') == names.count('"inner__Hash2"') == 1
