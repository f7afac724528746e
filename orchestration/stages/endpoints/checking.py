"""A check of what was updated, which goes back where the new model answers wrongly.

While it is not over, a record of what served before is kept in AWS under the run's own name. So
whatever becomes of the run in between, what an attempt at it finds there was decided once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from orchestration.expressions import All, Compare, Result, Tree, join
from orchestration.graph import (
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
from orchestration.stages.endpoints import variants
from orchestration.stages.endpoints.applying import CONFIG_VISIBLE_LATER, scaled
from orchestration.stages.endpoints.asking import Asking
from orchestration.stages.endpoints.cases import Case
from orchestration.stages.endpoints.making import Made
from orchestration.stages.endpoints.states import States
from orchestration.stages.endpoints.trials import GONE, temporary, temporary_configuration
from orchestration.stages.hosting.sending import sent

ERROR: Final = "CheckFailed"
TOO_SLOW: Final = "CheckTooSlow"
_CONFIG: Final = "EndpointConfigName"


class Checked(Protocol):
    """Something that a check may take back: a whole endpoint, or a component of one."""

    @property
    def noun(self) -> str:
        """The word for it in causes, with its article."""

    @property
    def where(self) -> Mapping[str, Tree]:
        """Further fields of requests to it."""

    def kept(self, before: Result) -> Call:
        """Keep a record of what served before; that of an earlier attempt at the run stays."""

    def left(self) -> Call:
        """Read the record: its output ``before`` is empty where there is none."""

    def forgotten(self, step: str, after: tuple[str, ...]) -> Call:
        """Delete the record."""

    def serves(self, step: str, after: tuple[str, ...]) -> Call:
        """Ask what it serves: the output ``config``."""

    def settled(self, step: str, after: tuple[str, ...]) -> Call:
        """Wait until nothing changes it: the outputs ``config`` and ``status``."""

    def back(self, left: str, settled: str) -> tuple[Step, ...]:
        """Let it serve again what the record that the step ``left`` has read says."""


@dataclass(frozen=True, slots=True)
class Checking:
    """The steps that ask once more what serves the new model, and go back if it answers wrongly."""

    made: Made
    cases: tuple[Case, ...]
    checked: Checked

    def steps(self, after: tuple[str, ...]) -> tuple[Step, ...]:
        """Return the check, and the way back if it fails."""
        before = Result(self._name("look"), "config")
        # What is new has nothing to go back to: it stays with what it has.
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
            acquire=self.checked.kept(Result(known.name, "config")),
            body=Graph(self._body()),
            cleanup=Graph(self._cleanup()),
            after=(known.name,),
        )
        return known, guarded

    def _name(self, step: str) -> str:
        return f"{self.made.stage.name}.{step}"

    def _body(self) -> tuple[Step, ...]:
        before, noun = Result(self._name("look"), "config"), self.checked.noun
        asking = Asking(
            self._name("check"),
            self.made.endpoint,
            error=ERROR,
            too_slow=TOO_SLOW,
            remedy=join(f"{noun} goes back to what it served before: [", before, "]"),
            where=self.checked.where,
            judging=self.made.judging("check"),
        )
        asked = asking.steps(self.cases, ())
        serves = self.checked.serves("check_serves", (asked[-1].name,))
        # Who tries one request again by hand must not be told that the old model answers well.
        config = Result(serves.name, "config")
        still = Require(
            name=self._name("check_same"),
            condition=Compare("eq", config, self.made.name),
            error=ERROR,
            cause=join(
                *(f"{noun} serves ", config, " instead of ", self.made.name),
                "; start the whole stage again",
            ),
        )
        return *asked, serves, still, self.checked.forgotten("check_passed", (still.name,))

    def _cleanup(self) -> tuple[Step, ...]:
        looked = self.checked.left()
        before = Result(looked.name, "before")
        now = self.checked.settled("check_now", ())
        serves_it = (
            Compare("eq", Result(now.name, "config"), self.made.name),
            Compare("eq", Result(now.name, "status"), "InService"),
            Compare("ne", before, self.made.name),
        )
        going = Choose(
            name=self._name("check_back"),
            condition=All(serves_it),
            then=Graph(self._back(looked.name, before)),
            otherwise=Graph(),
            after=(now.name,),
        )
        over = self.checked.forgotten("check_over", (going.name,))
        failed = Choose(
            name=self._name("check_failed"),
            condition=Compare("ne", before, ""),
            then=Graph((now, going, over)),
            otherwise=Graph(),
        )
        return looked, failed

    def _back(self, left: str, before: Result) -> tuple[Step, ...]:
        settled = self._name("check_settled")
        restored = Require(
            name=self._name("check_restored"),
            condition=Compare("eq", Result(settled, "config"), before),
            error="EndpointFailed",
            cause=join(f"{self.checked.noun} could not go back to ", before),
        )
        return *self.checked.back(left, settled), restored


@dataclass(frozen=True, slots=True)
class CheckedEndpoint:
    """A whole endpoint, whose record is a configuration that serves nothing.

    It has the run's own name, and its variant the name of what served before.
    """

    made: Made

    noun: ClassVar[str] = "the endpoint"

    @property
    def where(self) -> Mapping[str, Tree]:
        """The variant that is asked, where there are several."""
        named = self.made.stage.variant
        return {} if named is None else {"TargetVariant": named}

    def kept(self, before: Result) -> Call:
        """Keep the name of the configuration that served before."""
        return temporary_configuration(self.made, "check", before)

    def left(self) -> Call:
        """Read the name of the configuration that served before."""
        return Call(
            name=self._name("check_left"),
            operation=Operation("sagemaker", "DescribeEndpointConfig", self._record),
            outputs={"before": Output(("ProductionVariants", 0, "VariantName"), kind="string")},
            recoveries=(Recovery(GONE.error, {"before": ""}),),
        )

    def forgotten(self, step: str, after: tuple[str, ...]) -> Call:
        """Delete the record."""
        operation = Operation("sagemaker", "DeleteEndpointConfig", self._record)
        return Call(name=self._name(step), operation=operation, recoveries=(GONE,), after=after)

    def serves(self, step: str, after: tuple[str, ...]) -> Call:
        """Ask for the configuration that it has."""
        described = Operation("sagemaker", "DescribeEndpoint", {"EndpointName": self.made.endpoint})
        outputs = {"config": Output((_CONFIG,), kind="string")}
        return Call(name=self._name(step), operation=described, outputs=outputs, after=after)

    def settled(self, step: str, after: tuple[str, ...]) -> Call:
        """Wait until nothing changes it."""
        until: Until = States(self.made).until()
        return Call(name=self._name(step), operation=until.poll, until=until, after=after)

    def back(self, left: str, settled: str) -> tuple[Step, ...]:
        """Return its update, all at once, which keeps the number of scaled instances."""
        asked = scaled(self.made, self._name("check_scaled"))
        request: dict[str, Tree] = {
            "EndpointName": self.made.endpoint,
            _CONFIG: Result(left, "before"),
            **variants.retaining(self.made, Result(asked.name, "targets")),
        }
        update = Call(
            name=self._name("check_undone"),
            operation=Operation("sagemaker", "UpdateEndpoint", request),
            retry=CONFIG_VISIBLE_LATER,
            after=(asked.name,),
        )
        scaling = self.made.stage.autoscaling is not None
        steps = sent(States(self.made), update, self.made.name, scaled=scaling)
        step = settled.removeprefix(f"{self.made.stage.name}.")
        return asked, *steps, self.settled(step, (steps[-1].name,))

    def _name(self, step: str) -> str:
        return f"{self.made.stage.name}.{step}"

    @property
    def _record(self) -> dict[str, Tree]:
        return {_CONFIG: temporary(self.made)}
