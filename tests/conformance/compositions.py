"""Pipelines put together at random from everything that stages can be composed with.

A composition is drawn from its number alone, so that a failure is found again by it. Its stages are
calls of services that cost nothing to simulate: what is tried is how conditions, absent outputs,
loops, retries, failures, nested files and stages after the end meet each other.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

Tree = Any
TOPIC = "arn:aws:sns:us-east-1:123456789012:news"
FAILURE = {"kind": "data_staging", "source": "s3://bucket/nothing"}
"""A stage that fails with an error of ours."""
AWKWARD = ("{{ ds }}", "{% $x %}", 'it\'s "so"', "back\\slash", "line\nπ 漢", "$.path", "%s")
PARAMETERS: dict[str, Any] = {
    "mode": {"default": "quick"},
    "flag": {"type": "boolean", "default": True},
    "count": {"type": "number", "default": 2},
    "items": {"type": "array", "default": ["a", "b"]},
}
MODES = ("quick", "full")


@dataclass(frozen=True)
class Drawn:
    """A stage that later ones can refer to."""

    name: str
    output: str
    looped: bool = False
    skippable: bool = False
    constant: bool = True
    """Its output is the same in every run."""


@dataclass
class Drawing:
    """A composition while it is drawn."""

    random: random.Random
    prefix: str = ""
    drawn: list[Drawn] = field(default_factory=list)
    stages: dict[str, Any] = field(default_factory=dict)
    failing: bool = False

    def text(self) -> Tree:
        """Draw a text."""
        return self.random.choice(
            [
                self.random.choice(AWKWARD),
                {"parameter": "mode"},
                {"join": ["mode ", {"parameter": "mode"}, self.random.choice(AWKWARD)]},
                self.random.choice(AWKWARD),
            ]
        )

    def reference(self) -> tuple[Tree, bool]:
        """Draw a value, and whether its stage is skipped where it is absent."""
        single = [stage for stage in self.drawn if not stage.looped]
        if not single or self.random.random() < 0.35:
            return self.text(), False
        first = self.random.choice(single)
        reference = {"ref": f"{first.name}.{first.output}"}
        if self.random.random() < 0.5:
            tried = [first, *self.random.sample(single, min(len(single), 2))]
            certain = [place for place, stage in enumerate(tried) if not stage.skippable]
            tried = tried[: certain[0] + 1] if certain else tried
            values: list[Tree] = [
                {"ref": f"{stage.name}.{stage.output}"} for stage in dict.fromkeys(tried)
            ]
            if not certain:
                values.append(self.text())
            return {"first_of": values} if len(values) > 1 else values[0], False
        return {"join": ["of ", reference]}, first.skippable

    def comparison(self) -> Tree:
        single = [stage for stage in self.drawn if not stage.looped and stage.constant]
        options: list[Tree] = [
            {"equal": [{"parameter": "mode"}, self.random.choice(MODES)]},
            {"in": [{"parameter": "mode"}, ["full", "none"]]},
            {"parameter": "flag"},
            {"at_least": [{"parameter": "count"}, self.random.randint(0, 4)]},
            {"less": [self.random.randint(0, 4), {"parameter": "count"}]},
        ]
        if single:
            stage = self.random.choice(single)
            value: Tree = {"ref": f"{stage.name}.{stage.output}"}
            if stage.skippable:
                value = {"first_of": [value, "absent"]}
            options += [{"not_equal": [value, "absent"]}, {"equal": [value, "SELECT 1"]}]
        return self.random.choice(options)

    def condition(self, depth: int = 0) -> Tree:
        roll = self.random.random()
        if depth > 1 or roll < 0.6:
            return self.comparison()
        if roll < 0.75:
            return {"not": self.condition(depth + 1)}
        kind = self.random.choice(["all", "any"])
        return {kind: [self.condition(depth + 1) for _ in range(self.random.randint(1, 3))]}

    def items(self) -> tuple[Tree, bool]:
        looped = [stage for stage in self.drawn if stage.looped]
        if looped and self.random.random() < 0.5:
            stage = self.random.choice(looped)
            return {"ref": f"{stage.name}.{stage.output}"}, stage.skippable
        return self.random.choice([{"parameter": "items"}, ["x", "y", "z"], [1, 2], []]), False

    def stage(self, number: int, fails: bool = False) -> None:
        """Add a stage."""
        name = f"s{number}"
        value, skippable = self.reference()
        further: dict[str, Any] = {}
        looped = not fails and self.random.random() < 0.3
        if looped:
            items, absent = self.items()
            skippable |= absent
            further["for_each"] = {"items": items, "max_concurrency": self.random.randint(1, 3)}
            value = {"join": [value, " ", {"each": "item"}]}
        if not fails and self.random.random() < 0.4:
            further["when"] = self.condition()
            skippable = True
        if self.drawn and self.random.random() < 0.3:
            further["after"] = [self.random.choice(self.drawn).name]
        queried = not fails and self.random.random() < 0.5
        made = query(name, value) if queried else message(value)
        self.stages[name] = {**(FAILURE if fails else made), **further}
        if fails:
            return
        output = "sql" if queried else "id"
        constant = queried and all(stage.constant for stage in self.drawn)
        self.drawn.append(Drawn(name, output, looped, skippable, constant))


def query(name: str, sql: Tree) -> dict[str, Any]:
    """A stage with a job."""
    return {
        "kind": "aws_call",
        "service": "athena",
        "operation": "StartQueryExecution",
        "request": {
            "QueryString": sql,
            "ResultConfiguration": {"OutputLocation": "s3://bucket/results"},
        },
        "results": {"id": "QueryExecutionId"},
        "poll": {
            "operation": "GetQueryExecution",
            "request": {"QueryExecutionId": {"ref": f"{name}.id"}},
            "status": "QueryExecution.Status.State",
            "success": ["SUCCEEDED"],
            "failure": ["FAILED", "CANCELLED"],
            "outputs": {"sql": "QueryExecution.Query"},
        },
    }


def message(text: Tree) -> dict[str, Any]:
    """A stage without a job."""
    return {
        "kind": "aws_call",
        "service": "sns",
        "operation": "Publish",
        "request": {"TopicArn": TOPIC, "Message": text},
        "results": {"id": "MessageId"},
    }


def outcome(drawing: Drawing) -> Tree:
    parts = [{"outcome": "state"}, "|", {"outcome": "error"}, "|", {"outcome": "cause"}]
    return {"join": [drawing.random.choice(AWKWARD), "|", *parts]}


def composition(number: int) -> dict[str, Any]:
    """Return the document of the pipeline with a number."""
    drawing = Drawing(random.Random(number))
    chance = drawing.random
    stages = chance.randint(2, 8)
    failing = chance.randrange(stages) if chance.random() < 0.3 else None
    for position in range(stages):
        drawing.stage(position, fails=position == failing)
    document: dict[str, Any] = {
        "name": f"composition-{number}",
        "region": "us-east-1",
        "workspace": "s3://bucket/runs",
        "parameters": PARAMETERS,
        "stages": drawing.stages,
    }
    for section in ("on_failure", "on_success", "always"):
        if chance.random() < 0.3:
            after = message(outcome(drawing))
            if chance.random() < 0.3:
                after["when"] = {"not_equal": [{"outcome": "error"}, "SourceNotUsable"]}
            document[section] = {f"{section}_note": after}
    if kept := [stage for stage in drawing.drawn if not stage.looped]:
        document.setdefault("always", {}).update(reading(random.Random(-number), kept))
    return document


def reading(chance: random.Random, kept: list[Drawn]) -> dict[str, Any]:
    """Return stages after the end that read outputs, which may be absent by then."""
    values = [{"ref": f"{stage.name}.{stage.output}"} for stage in chance.sample(kept, 1)]
    either = {"first_of": [*values, "absent"]}
    return {
        "kept_note": message({"join": ["kept ", *values]}),
        "either_note": message({"join": ["either ", either]}),
        "absent_note": {**message("absent"), "when": {"equal": [either, "absent"]}},
    }


def parameters(number: int) -> dict[str, Any]:
    """Return the parameters of the run of a composition."""
    chance = random.Random(-number - 1)
    return {
        "mode": chance.choice(MODES),
        "flag": chance.random() < 0.5,
        "count": chance.randint(0, 4),
        "items": chance.choice([[], ["a"], ["a", "b", "c"], ["x y", "π'\"\\"]]),
    }
