"""Random machines of choices: the same tasks run, and the same runs fail, in what is imported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestration.importing import from_data

TOPIC = "arn:aws:sns:us-east-1:111122223333:t"
NAMES = ("x", "y")
VALUES = ("a", "b", "c")


class Failed(Exception):
    pass


def ran(machine: Mapping[str, Any], data: Mapping[str, str]) -> Iterator[str]:
    """Yield the tasks of an execution, by the rules of the Amazon States Language."""
    name = machine["StartAt"]
    while name:
        state = machine["States"][name]
        match state["Type"]:
            case "Task":
                yield name
            case "Fail":
                raise Failed
            case "Parallel":
                for branch in state["Branches"]:
                    yield from ran(branch, data)
            case "Choice":
                name = next((r["Next"] for r in state["Choices"] if holds(r, data)), None)
                name = name or state.get("Default")
                if name is None:
                    raise Failed
                continue
        name = None if state["Type"] == "Succeed" else state.get("Next")


def holds(rule: Mapping[str, Any], data: Mapping[str, str]) -> bool:
    if "Not" in rule:
        return not holds(rule["Not"], data)
    return data[rule["Variable"][2:]] == str(rule["StringEquals"])


def is_true(when: Any, data: Mapping[str, str]) -> bool:
    match when:
        case None:
            return True
        case {"all": inner}:
            return all(is_true(each, data) for each in inner)
        case {"any": inner}:
            return any(is_true(each, data) for each in inner)
        case {"not": inner}:
            return not is_true(inner, data)
        case {"equal": [{"parameter": str(name)}, str(value)]}:
            return data[name] == value
    raise AssertionError(when)


@st.composite
def rules(draw: st.DrawFn, following: list[str]) -> list[dict[str, Any]]:
    made = []
    for _ in range(draw(st.integers(1, 2))):
        variable = f"$.{draw(st.sampled_from(NAMES))}"
        test: dict[str, Any] = {"Variable": variable, "StringEquals": draw(st.sampled_from(VALUES))}
        test = {"Not": test} if draw(st.booleans()) else test
        made.append({**test, "Next": draw(st.sampled_from(following))})
    return made


@st.composite
def machines(draw: st.DrawFn, prefix: str = "S", depth: int = 1) -> dict[str, Any]:
    """Make a machine whose states lead only to later ones; those of branches have equal names."""
    names = [f"{prefix}{n}" for n in range(draw(st.integers(2, 6 if depth else 3)))]
    states: dict[str, Any] = {}
    for number, name in enumerate(names):
        after = names[number + 1 :]
        kinds = ["Task", "Choice", "Choice", "Pass", *(["Parallel"] if depth else [])]
        kind = draw(st.sampled_from([*kinds, "Fail"])) if after else "Task"
        states[name] = {"Type": kind}
        if kind == "Choice":
            states[name]["Choices"] = draw(rules(after))
            if draw(st.booleans()):
                states[name]["Default"] = draw(st.sampled_from(after))
        elif kind != "Fail":
            states[name] |= {"Next": draw(st.sampled_from(after))} if after else {"End": True}
        if kind == "Task":
            states[name]["Resource"] = "arn:aws:states:::sns:publish"
            states[name] |= {"Parameters": {"TopicArn": TOPIC, "Message": name}, "ResultPath": None}
        if kind == "Parallel":
            states[name]["ResultPath"] = None
            states[name]["Branches"] = [
                draw(machines(prefix=f"{name}_{n}_", depth=0)) for n in range(2)
            ]
            for branch in states[name]["Branches"]:
                inner = branch["States"]
                if inner[branch["StartAt"]]["Type"] == "Choice":  # Choices may have one name.
                    inner["Same"] = inner.pop(branch["StartAt"])
                    branch["StartAt"] = "Same"
    return {"StartAt": names[0], "States": states}


def executed(machine: dict[str, Any]) -> list[tuple[dict[str, str], set[str] | None]]:
    """Return the tasks that run by each input; none where the execution fails."""
    made: list[tuple[dict[str, str], set[str] | None]] = []
    for values in product(VALUES, repeat=len(NAMES)):
        data = dict(zip(NAMES, values, strict=True))
        try:
            made.append((data, set(ran(machine, data))))
        except Failed:
            made.append((data, None))
    return made


@settings(max_examples=40, deadline=None, database=None)
@given(machines())
def test_the_same_tasks_run_and_the_same_runs_fail(machine: dict[str, Any]) -> None:
    theirs = executed(machine)
    if not any(tasks for _, tasks in theirs):
        return  # Nothing is left of it, or every run of it fails, which no pipeline may.
    stages = from_data(machine).description["stages"]
    for data, tasks in theirs:
        running = [stage for stage in stages.values() if is_true(stage.get("when"), data)]
        assert any(stage["kind"] == "fail" for stage in running) == (tasks is None)
        if tasks is not None:
            assert {stage["request"]["Message"] for stage in running} == tasks
