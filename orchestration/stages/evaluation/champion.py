"""The champion: which model is in use, and its evaluation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, cast

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
from orchestration.refs import Expression
from orchestration.stages.evaluation.comparing import Champion
from orchestration.stages.evaluation.fields import EvaluationFields
from orchestration.stages.evaluation.jobs import Evaluating
from orchestration.stages.evaluation.predicting import Predictor
from orchestration.stages.hosting.states import GONE, NAME
from orchestration.stages.registry.versions import latest_approved
from orchestration.stages.stage import Context
from orchestration.stages.values import Text

CHAMPION_NOT_EVALUATED: Final = "ChampionNotEvaluated"
"""The error of a run whose champion cannot be found in S3, evaluated or compared."""
_NO_ENDPOINT = ErrorPattern("ValidationException", "Could not find endpoint")
_PLACES: Final = {
    "source": ("ModelDataSource", "S3DataSource", "S3Uri"),
    "url": ("ModelDataUrl",),
}
"""The places of a container's model, of which it has one."""
_OF_COMPONENT: Final = {
    "found": Output(("InferenceComponentName",), kind="string"),
    "endpoint": Output(("EndpointName",), kind="string"),
    "model": Output(("Specification", "ModelName"), kind="string", default=""),
    "files": Output(("Specification", "Container", "ArtifactUrl"), kind="string", default=None),
}


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
        return Predictor(data=uri, name=self._serving)

    @property
    def _serving(self) -> Result:
        """The name of the model that serves; empty where none is known."""
        step = "config" if self.champion.inference_component is None else "look"
        return Result(f"{self.choice}.{step}", "model")

    def _look(self) -> Call:
        group, component = self.champion.package_group, self.champion.inference_component
        name = f"{self.choice}.look"
        if group is not None:
            return latest_approved(name, group, self.champion.registry_role)
        if component is not None:
            return Call(
                name=name,
                operation=Operation("sagemaker", "DescribeInferenceComponent", {NAME: component}),
                outputs=_OF_COMPONENT,
                recoveries=(Recovery(GONE, dict.fromkeys(_OF_COMPONENT, "")),),
            )
        request = {"EndpointName": self.champion.endpoint}
        return Call(
            name=name,
            operation=Operation("sagemaker", "DescribeEndpoint", request),
            outputs={"found": Output(("EndpointConfigName",), kind="string")},
            recoveries=(Recovery(_NO_ENDPOINT, {"found": ""}),),
        )

    def _described(self) -> tuple[tuple[Step, ...], list[Result]]:
        """Return the steps that tell the champion's places in S3, and these, of which one is."""
        if self.champion.endpoint is None:
            package = self._of_package(Result(f"{self.choice}.look", "found"))
            return (package,), [Result(package.name, name) for name in _PLACES]
        if self.champion.inference_component is None:
            return self._of_endpoint()
        return self._of_component(self.champion.inference_component)

    def _of_endpoint(self) -> tuple[tuple[Step, ...], list[Result]]:
        endpoint = self.champion.endpoint
        config = {"EndpointConfigName": Result(f"{self.choice}.look", "found")}
        serving = self._description(
            f"{self.choice}.config",
            Operation("sagemaker", "DescribeEndpointConfig", config),
            {"model": Output(("ProductionVariants", 0, "ModelName"), kind="string", default="")},
        )
        whole = self._required(
            "whole",
            Compare("ne", self._serving, ""),
            *("the endpoint ", endpoint, " has no model of its own; name one of its inference "),
            *("components: champion: {endpoint: ", endpoint, ", inference_component: NAME}"),
        )
        described, places = self._of_model(after=(whole.name,))
        return (serving, whole, *described), places

    def _of_component(self, name: Text) -> tuple[tuple[Step, ...], list[Result]]:
        look, endpoint = f"{self.choice}.look", self.champion.endpoint
        on = Result(look, "endpoint")
        before: list[Step] = [
            self._required(
                "placed",
                Compare("eq", on, endpoint),
                *("the inference component ", name, " is on the endpoint ", on),
                *(", not on ", endpoint),
            )
        ]
        if self.stage.transform is not None:
            predicts = self._required(
                "predicts",
                Compare("ne", self._serving, ""),
                *("the inference component ", name, " has a container without a model of its "),
                "name, which no batch transform can be given; leave the transform out",
            )
            before.append(replace(predicts, after=(before[-1].name,)))
        described, places = self._of_model(after=())
        # A component has a model, or files of its own.
        files: dict[str, Tree] = {**dict.fromkeys(each.output for each in places)}
        chosen = Choose(
            name=f"{self.choice}.component",
            condition=Compare("ne", self._serving, ""),
            then=Graph(described),
            otherwise=Graph(),
            collect={each.output: each for each in places},
            absent={**files, places[0].output: Result(look, "files")},
            after=(before[-1].name,),
        )
        return (*before, chosen), [Result(chosen.name, each.output) for each in places]

    def _of_model(self, after: tuple[str, ...]) -> tuple[tuple[Step, ...], list[Result]]:
        """Return the steps that tell the places of the model that serves, or of its version."""
        container, more = ("PrimaryContainer",), ("Containers", self.champion.container - 1)
        places = {
            f"{name}{number}": Output((*where, *place), kind="string", default=None)
            for number, where in enumerate((container, more))
            for name, place in _PLACES.items()
        }
        version = Output((*container, "ModelPackageName"), kind="string", default="")
        described = self._description(
            f"{self.choice}.model",
            Operation("sagemaker", "DescribeModel", {"ModelName": self._serving}),
            {**places, "package": version},
        )
        model = replace(described, after=after)
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
        return (model, served), [Result(served.name, name) for name in places]

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
        return self._required(
            "stored",
            Any(tuple(Compare("ne", place, None) for place in places)),
            *("no model in S3 is known of the champion ", Result(f"{self.choice}.look", "found")),
        )

    def _required(self, step: str, condition: Expression[bool], *cause: Tree) -> Require:
        words = cast("tuple[str | Expression[object], ...]", cause)
        return Require(
            name=f"{self.choice}.{step}",
            condition=condition,
            error=CHAMPION_NOT_EVALUATED,
            cause=join(f"stage {self.stage.name}: ", *words),
        )
