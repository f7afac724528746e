"""A check of the endpoint after its update, which goes back where the new model answers wrongly.

While it is not over, a configuration stands for it that serves nothing: it has the run's own name,
and its variant the name of what served before. So whatever becomes of the run in between, what an
attempt at it finds there was decided once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orchestration.expressions import All, Compare, Result, Tree, join
from orchestration.graph import (
    Adopt,
    Call,
    Choose,
    Graph,
    Guarded,
    Operation,
    Output,
    Recovery,
    Require,
    Step,
    Until,
)
from orchestration.refs import Expression
from orchestration.stages.endpoints import variants
from orchestration.stages.endpoints.applying import CONFIG_VISIBLE_LATER, UPDATING, scaled
from orchestration.stages.endpoints.asking import Asking
from orchestration.stages.endpoints.cases import Case
from orchestration.stages.endpoints.making import Made
from orchestration.stages.endpoints.states import States
from orchestration.stages.endpoints.trials import GONE, temporary, temporary_configuration

ERROR: Final = "CheckFailed"
TOO_SLOW: Final = "CheckTooSlow"
_CONFIG: Final = "EndpointConfigName"


@dataclass(frozen=True, slots=True)
class Checking:
    """The steps that ask an endpoint again once it serves the new model."""

    made: Made
    cases: tuple[Case, ...]

    def steps(self, after: tuple[str, ...]) -> tuple[Step, ...]:
        """Return the check, and the way back if it fails."""
        before = Result(self._name("look"), "config")
        # A new endpoint has nothing to go back to: it stays with what it has.
        known = Choose(
            name=self._name("before"),
            condition=Compare("eq", before, ""),
            then=Graph(),
            otherwise=Graph(),
            collect={"config": self.made.name},
            absent={"config": before},
            after=after,
        )
        guarded = Guarded(
            name=self._name("checked"),
            acquire=temporary_configuration(self.made, "check", Result(known.name, "config")),
            body=Graph(self._body()),
            cleanup=Graph(self._cleanup()),
            after=(known.name,),
        )
        return known, guarded

    def _name(self, step: str) -> str:
        return f"{self.made.stage.name}.{step}"

    @property
    def _mark(self) -> Expression[str]:
        return temporary(self.made)

    def _body(self) -> tuple[Step, ...]:
        before = Result(self._name("look"), "config")
        remedy = join("the endpoint goes back to what it served before: [", before, "]")
        named = self.made.stage.variant
        asking = Asking(
            self._name("check"),
            self.made.endpoint,
            error=ERROR,
            too_slow=TOO_SLOW,
            remedy=remedy,
            variant=named,
            judging=self.made.judging("check"),
        )
        asked = asking.steps(self.cases, ())
        described = Operation("sagemaker", "DescribeEndpoint", {"EndpointName": self.made.endpoint})
        serves = Call(
            name=self._name("check_serves"),
            operation=described,
            outputs={"config": Output((_CONFIG,), kind="string")},
            after=(asked[-1].name,),
        )
        # Who tries one request again by hand must not be told that the old model answers well.
        config = Result(serves.name, "config")
        still = Require(
            name=self._name("check_same"),
            condition=Compare("eq", config, self.made.name),
            error=ERROR,
            cause=join(
                *("the endpoint serves ", config, " instead of ", self.made.name),
                "; start the whole stage again",
            ),
        )
        return *asked, serves, still, self._forgotten("check_passed", still.name)

    def _forgotten(self, step: str, *after: str) -> Call:
        operation = Operation("sagemaker", "DeleteEndpointConfig", {_CONFIG: self._mark})
        recoveries = (GONE,)
        return Call(
            name=self._name(step), operation=operation, recoveries=recoveries, after=tuple(after)
        )

    def _cleanup(self) -> tuple[Step, ...]:
        looked = Call(
            name=self._name("check_left"),
            operation=Operation("sagemaker", "DescribeEndpointConfig", {_CONFIG: self._mark}),
            outputs={"before": Output(("ProductionVariants", 0, "VariantName"), kind="string")},
            recoveries=(Recovery(GONE.error, {"before": ""}),),
        )
        before = Result(looked.name, "before")
        now = self._settled("check_now", ())
        serves_it = (
            Compare("eq", Result(now.name, "config"), self.made.name),
            Compare("eq", Result(now.name, "status"), "InService"),
            Compare("ne", before, self.made.name),
        )
        going = Choose(
            name=self._name("check_back"),
            condition=All(serves_it),
            then=Graph(self._back(before)),
            otherwise=Graph(),
            after=(now.name,),
        )
        failed = Choose(
            name=self._name("check_failed"),
            condition=Compare("ne", before, ""),
            then=Graph((now, going, self._forgotten("check_over", going.name))),
            otherwise=Graph(),
        )
        return looked, failed

    def _settled(self, step: str, after: tuple[str, ...]) -> Call:
        until: Until = States(self.made).until()
        return Call(name=self._name(step), operation=until.poll, until=until, after=after)

    def _back(self, before: Result) -> tuple[Step, ...]:
        asked = scaled(self.made, self._name("check_scaled"))
        request: dict[str, Tree] = {
            "EndpointName": self.made.endpoint,
            _CONFIG: before,
            **variants.retaining(self.made, Result(asked.name, "targets")),
        }
        update = Call(
            name=self._name("check_undone"),
            operation=Operation("sagemaker", "UpdateEndpoint", request),
            adopt=Adopt(exists=UPDATING),
            retry=CONFIG_VISIBLE_LATER,
            after=(asked.name,),
        )
        settled = self._settled("check_settled", (update.name,))
        back = Require(
            name=self._name("check_restored"),
            condition=Compare("eq", Result(settled.name, "config"), before),
            error="EndpointFailed",
            cause=join("the endpoint could not go back to ", before),
        )
        return asked, update, settled, back
