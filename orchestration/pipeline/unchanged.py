"""The end of a run that would see only what the last successful run has seen."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, cast

from orchestration.errors import PipelineError, Problem
from orchestration.expressions import All, Function, Not, Parameter, Result, Tree, apply, join
from orchestration.graph import Choose, Graph, ParameterSpec, Step
from orchestration.graph.codec import encode
from orchestration.pipeline.placing.placement import saved
from orchestration.refs import Expression
from orchestration.stages import Fragment
from orchestration.stages.stage import Look
from orchestration.stages.unchanged import record

NAME: Final = "sources_changed"
"""The choice whether a run goes on, beside the stages."""
_FINGERPRINT: Final = "fingerprint"


@dataclass(frozen=True)
class Ending:
    """A graph, and the looks of its stages that may end a run before it."""

    graph: Graph
    shown: Mapping[str, Mapping[str, Tree]]
    """The outputs of a run that goes on, by stage."""
    looks: Mapping[str, Look]
    parameters: tuple[ParameterSpec, ...]

    @classmethod
    def of(
        cls,
        graph: Graph,
        shown: Tree,
        fragments: Mapping[str, Fragment],
        parameters: tuple[ParameterSpec, ...],
    ) -> Ending | None:
        """Return how runs of a graph may end early; ``None`` where they don't."""
        looks = {name: each.look for name, each in fragments.items() if each.look is not None}
        if looks and NAME in fragments:
            message = f"{NAME} decides whether the run goes on; call the stage otherwise"
            raise PipelineError([Problem("name", message, stage=NAME)])
        lists = [spec.name for spec in parameters if spec.type == "array"]
        if looks and lists:
            message = (
                "is an array, which unless_unchanged: end_run can't compare with the last run's"
            )
            raise PipelineError([Problem(f"parameters.{name}", message) for name in lists])
        stages = cast("Mapping[str, Mapping[str, Tree]]", shown)
        return cls(graph, stages, looks, parameters) if looks else None

    def whole(self) -> Graph:
        """Return the graph behind the looks; its last steps leave the records of a success."""
        collected = {
            _collected(stage, output): tree
            for stage, outputs in self.shown.items()
            for output, tree in outputs.items()
            if not (stage in self.looks and output == _FINGERPRINT)
        }
        steps = [step for look in self.looks.values() for step in look.steps]
        choice = Choose(
            name=NAME,
            condition=Not(All(tuple(self._unchanged(look) for look in self.looks.values()))),
            then=saved(self.graph, Graph(tuple(self._records()))),
            otherwise=Graph(),
            collect=collected,
            absent=dict.fromkeys(collected),
            after=tuple(step.name for step in steps),
        )
        return Graph((*steps, choice))

    def outputs(self) -> dict[str, Tree]:
        """Return what every run shows: what it saw, whether it went on, and what came of that."""
        outputs: dict[str, dict[str, Tree]] = {
            stage: {name: Result(NAME, _collected(stage, name)) for name in outputs}
            for stage, outputs in self.shown.items()
        }
        for stage, look in self.looks.items():
            seen = {_FINGERPRINT: look.fingerprint, "unchanged": self._unchanged(look)}
            outputs[stage] = {**outputs.get(stage, {}), **seen}
        return dict(outputs)

    def _records(self) -> Iterator[Step]:
        for name, look in self.looks.items():
            content: dict[str, Tree] = {
                "fingerprint": look.fingerprint,
                "token": self._token(look),
            }
            yield record(f"{name}.record", look.record, content)

    def _unchanged(self, look: Look) -> Expression[bool]:
        return apply(Function.CONTAINS, look.earlier, self._token(look))  # type: ignore[return-value]  # a function that gives a boolean

    def _token(self, look: Look) -> Expression[object]:
        """Return a hash of all that a run begins with; a run with another begins anew."""
        parts: list[str | Expression[object]] = [self._digest()]
        for spec in sorted(self.parameters, key=lambda spec: spec.name):
            parts += [f" {spec.name}=", Parameter(spec.name)]
        return apply(Function.HASH, join(look.fingerprint, " ", *parts))

    def _digest(self) -> str:
        document = encode(list(self.graph.steps))
        return sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _collected(stage: str, output: str) -> str:
    return f"{stage}__{output}"
