"""The champion: which model is in use, and its evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orchestration.expressions import Any, Compare, Function, Result, Tree, apply, join
from orchestration.graph import (
    Call,
    Choose,
    ErrorPattern,
    Failure,
    Graph,
    Operation,
    Output,
    Recovery,
    Require,
    Step,
)
from orchestration.stages.evaluation.comparing import Champion
from orchestration.stages.evaluation.fields import EvaluationFields
from orchestration.stages.evaluation.jobs import Evaluating
from orchestration.stages.evaluation.predicting import Predictor
from orchestration.stages.registry.versions import latest_approved
from orchestration.stages.stage import Context

CHAMPION_NOT_EVALUATED: Final = "ChampionNotEvaluated"
"""The error of a run whose champion cannot be found in S3, evaluated or compared."""
_NO_ENDPOINT = ErrorPattern("ValidationException", "Could not find endpoint")
_PLACES: Final = {
    "source": ("ModelDataSource", "S3DataSource", "S3Uri"),
    "url": ("ModelDataUrl",),
}
"""The places of a container's model, of which it has one."""


@dataclass(frozen=True)
class Looking:
    """The steps that find and evaluate the champion, if there is one."""

    stage: EvaluationFields
    context: Context
    champion: Champion

    @property
    def choice(self) -> str:
        """The name of the last step."""
        return f"{self.stage.name}.champion"

    @property
    def model(self) -> Tree:
        """The S3 URI of the champion; empty where there is none yet."""
        return Result(self.choice, "model")

    def steps(self) -> tuple[Step, ...]:
        """Return the steps: a look, and an evaluation where it finds something."""
        look = self._look()
        following, places = self._described()
        uri = apply(Function.FIRST_OF, *places)
        evaluating = Evaluating(self.stage, self.context, self._predictor(uri))
        body: tuple[Step, ...] = (*following, self._packed(places), *evaluating.steps(self.choice))
        found = Choose(
            name=self.choice,
            condition=Compare("ne", Result(look.name, "found"), ""),
            then=Graph(body),
            otherwise=Graph(),
            collect={"model": uri},
            absent={"model": ""},
        )
        return (look, found)

    def _predictor(self, uri: Tree) -> Predictor:
        """Return the champion as it is evaluated: what is served makes its predictions itself."""
        if self.champion.endpoint is None:
            return Predictor(data=uri, package=Result(f"{self.choice}.look", "found"))
        return Predictor(data=uri, name=Result(f"{self.choice}.config", "model"))

    def _look(self) -> Call:
        group = self.champion.package_group
        if group is not None:
            return latest_approved(f"{self.choice}.look", group, self.champion.registry_role)
        request = {"EndpointName": self.champion.endpoint}
        return Call(
            name=f"{self.choice}.look",
            operation=Operation("sagemaker", "DescribeEndpoint", request),
            outputs={"found": Output(("EndpointConfigName",), kind="string")},
            recoveries=(Recovery(_NO_ENDPOINT, {"found": ""}),),
        )

    def _described(self) -> tuple[tuple[Step, ...], list[Result]]:
        """Return the steps that tell the champion's places in S3, and these, of which one is."""
        if self.champion.endpoint is None:
            package = self._of_package(Result(f"{self.choice}.look", "found"))
            return (package,), [Result(package.name, name) for name in _PLACES]
        return self._of_endpoint()

    def _of_endpoint(self) -> tuple[tuple[Step, ...], list[Result]]:
        config = {"EndpointConfigName": Result(f"{self.choice}.look", "found")}
        first = f"{self.choice}.config"
        serving = self._description(
            first,
            Operation("sagemaker", "DescribeEndpointConfig", config),
            {"model": Output(("ProductionVariants", 0, "ModelName"), kind="string")},
        )
        container, more = ("PrimaryContainer",), ("Containers", self.champion.container - 1)
        places = {
            f"{name}{number}": Output((*where, *place), kind="string", default=None)
            for number, where in enumerate((container, more))
            for name, place in _PLACES.items()
        }
        version = Output((*container, "ModelPackageName"), kind="string", default="")
        model = self._description(
            f"{self.choice}.model",
            Operation("sagemaker", "DescribeModel", {"ModelName": Result(first, "model")}),
            {**places, "package": version},
        )
        package = self._of_package(Result(model.name, "package"))
        own = {name: Result(model.name, name) for name in places}
        registered: dict[str, Tree] = {f"{name}0": Result(package.name, name) for name in _PLACES}
        served = Choose(
            name=f"{self.choice}.served",
            condition=Compare("ne", Result(model.name, "package"), ""),
            then=Graph((package,)),
            otherwise=Graph(),
            collect={**dict.fromkeys(places), **registered},
            absent=own,
        )
        return (serving, model, served), [Result(served.name, name) for name in places]

    def _of_package(self, version: Result) -> Call:
        own = ("InferenceSpecification", "Containers", self.champion.container - 1)
        request, role = {"ModelPackageName": version}, self.champion.registry_role
        return self._description(
            f"{self.choice}.package",
            Operation("sagemaker", "DescribeModelPackage", request, assumes=role),
            {
                name: Output((*own, *place), kind="string", default=None)
                for name, place in _PLACES.items()
            },
        )

    def _description(self, name: str, operation: Operation, outputs: dict[str, Output]) -> Call:
        remedy = "deploy or approve another model, or leave the champion out"
        failure = Failure(error=CHAMPION_NOT_EVALUATED, remedy=remedy)
        return Call(name=name, operation=operation, outputs=outputs, failure=failure)

    def _packed(self, places: list[Result]) -> Require:
        """Return the requirement that the champion's model lies in S3."""
        return Require(
            name=f"{self.choice}.stored",
            condition=Any(tuple(Compare("ne", place, None) for place in places)),
            error=CHAMPION_NOT_EVALUATED,
            cause=join(
                f"stage {self.stage.name}: no model in S3 is known of the champion ",
                Result(f"{self.choice}.look", "found"),
            ),
        )
