"""The steps around the alarms of an update: they must exist, are made, and tell what went off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from orchestration.expressions import Compare, Function, Result, Tree, apply, join
from orchestration.graph import (
    Call,
    Choose,
    Fail,
    Graph,
    Operation,
    Output,
    Permission,
    Require,
    Step,
)
from orchestration.refs import Expression
from orchestration.stages.endpoints.updates import EndpointAlarms
from orchestration.stages.values import Text

_COLUMNS: Final = ("AlarmName", "StateValue")
_OUTPUTS: Final = {
    "alarms": Output(("MetricAlarms",), kind="list", columns=_COLUMNS, texts=_COLUMNS, default=())
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """The alarms of one deployment."""

    stage: str
    alarms: EndpointAlarms
    prefix: str
    """The beginning of the names of all that is made."""
    endpoint: Text
    config: Expression[str]
    variant: Tree
    tags: list[Tree]

    @property
    def names(self) -> list[Tree]:
        """The names of all of them."""
        return [*self.alarms.named, *(self._named(made) for made in self.alarms.made)]

    @property
    def permissions(self) -> tuple[Permission, ...]:
        """Needs beyond calling the operations: new alarms are tagged."""
        if not self.alarms.made:
            return ()
        place = "arn:{partition}:cloudwatch:{region}:{account}:alarm:" + self.prefix + "*"
        return (Permission(actions=("cloudwatch:TagResource",), resources=(place,)),)

    def usable(self) -> tuple[Step, ...]:
        """Require that the named alarms exist and that none of them has gone off already."""
        if not self.alarms.named:
            return ()
        name, count = f"{self.stage}.alarms", len(self.alarms.named)
        alarms = Result(name, "alarms")
        exist = Require(
            name=f"{self.stage}.alarms_exist",
            condition=Compare("eq", apply(Function.COUNT, alarms), count),
            error="AlarmMissing",
            cause=join(f"{count} alarms are named, and these exist: [", _names(alarms), "]"),
        )
        quiet = Require(
            name=f"{self.stage}.alarms_quiet",
            condition=Compare("eq", apply(Function.COUNT, _on(alarms)), 0),
            error="AlarmActive",
            cause=join(
                *("alarms are on, and would roll any update back: [", _names(_on(alarms)), "]")
            ),
            after=(exist.name,),
        )
        return self._described(name, list(self.alarms.named)), exist, quiet

    def made(self) -> tuple[Call, ...]:
        """Make the alarms of the new configuration."""
        return tuple(
            Call(
                name=f"{self.stage}.alarm_{made}",
                operation=Operation("cloudwatch", "PutMetricAlarm", self._request(made)),
            )
            for made in self.alarms.made
        )

    def reset(self) -> tuple[Call, ...]:
        """Forget what the alarms saw of an earlier deployment of the same configuration."""
        return tuple(
            Call(
                name=f"{self.stage}.reset_{made}",
                operation=Operation(
                    "cloudwatch",
                    "SetAlarmState",
                    {
                        "AlarmName": self._named(made),
                        "StateValue": "INSUFFICIENT_DATA",
                        "StateReason": "a deployment begins",
                    },
                ),
                after=(f"{self.stage}.serving",),
            )
            for made in self.alarms.made
        )

    def rolled_back(self, settled: str, after: tuple[str, ...]) -> Choose:
        """Fail a run whose configuration does not serve, by the names of the alarms."""
        name = f"{self.stage}.tripped"
        cause = join(
            *("it serves ", Result(settled, "config"), " instead of ", self.config, ": "),
            *(Result(settled, "reason"), "; alarms that are on: ["),
            *(_names(_on(Result(name, "alarms"))), "]"),
        )
        failed = Fail(name=f"{self.stage}.verified", error="EndpointRolledBack", cause=cause)
        return Choose(
            name=f"{self.stage}.rolled_back",
            condition=Compare("ne", Result(settled, "config"), self.config),
            then=Graph((self._described(name, self.names), failed)),
            otherwise=Graph(),
            after=after,
        )

    def _named(self, made: str) -> Expression[str]:
        return join(self.config, f"-{made}")

    def _described(self, name: str, names: list[Tree]) -> Call:
        operation = Operation("cloudwatch", "DescribeAlarms", {"AlarmNames": names})
        return Call(name=name, operation=operation, outputs=_OUTPUTS)

    def _request(self, made: str) -> dict[str, Any]:
        dimensions = {
            "EndpointName": self.endpoint,
            "VariantName": self.variant,
            # The new instances only: what the old ones answer does not count.
            "EndpointConfigName": self.config,
        }
        return {
            "AlarmName": self._named(made),
            "Namespace": "AWS/SageMaker",
            "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions.items()],
            **self.alarms.limits(made),
            "Period": self.alarms.period_s,
            "EvaluationPeriods": self.alarms.periods,
            "ComparisonOperator": "GreaterThanThreshold",
            # When the traffic is back, nothing is measured: the alarm still tells what it saw.
            "TreatMissingData": "ignore",
            "Tags": self.tags,
        }


def _on(alarms: Tree) -> Expression[object]:
    return apply(Function.WHERE, alarms, "StateValue", "eq", "ALARM")


def _names(alarms: Tree) -> Expression[object]:
    return apply(Function.LISTED, alarms, "AlarmName")
