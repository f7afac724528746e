"""The steps around the alarms of an update: they must exist, are made, and tell what went off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any as Anything
from typing import Final

from orchestration.expressions import Any, Compare, Field, Function, Item, Result, Tree, apply, join
from orchestration.graph import (
    Call,
    Choose,
    Fail,
    ForEach,
    Graph,
    Operation,
    Output,
    Permission,
    Require,
    Step,
)
from orchestration.refs import Expression
from orchestration.stages.endpoints.updates import MOST_ALARMS, EndpointAlarms

BEGAN: Final = "alarms"
"""The output that says since when alarms are as they are."""
_COLUMNS: Final = ("AlarmName", "StateValue")
_SINCE: Final = "StateUpdatedTimestamp"
_SUMMARY: Final = "HistorySummary"
_TURNED: Final = tuple(
    f"Alarm updated from {before} to ALARM" for before in ("OK", "INSUFFICIENT_DATA")
)
"""https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_AlarmHistoryItem.html"""
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
    config: Expression[str]
    """The name of what is to serve: a configuration, or the model of a component."""
    beginning: Expression[str]
    """The beginning of the names of the alarms that are made."""
    dimensions: Mapping[str, Tree]
    """The dimensions of the metrics that alarms are made on."""
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

    def reset(self, after: tuple[str, ...] = ()) -> tuple[Call, ...]:
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
                after=after,
            )
            for made in self.alarms.made
        )

    @property
    def recovers(self) -> bool:
        """True if an alarm may be off again as soon as the old model serves: those made stay on."""
        return bool(self.alarms.named)

    def rolled_back(self, settled: str, after: tuple[str, ...]) -> Choose:
        """Fail a run whose configuration does not serve, by the names of the alarms."""
        tripped = self._described(f"{self.stage}.tripped", self.names)
        on = _on(Result(tripped.name, "alarms"))
        return self._instead(settled, (tripped,), "; alarms that are on: [", on, after)

    def began(self, after: tuple[str, ...] = ()) -> Call:
        """Ask since when the alarms are as they are, right before an update."""
        operation = Operation("cloudwatch", "DescribeAlarms", {"AlarmNames": self.names})
        columns = (_COLUMNS[0], _SINCE)
        outputs = {BEGAN: Output(("MetricAlarms",), kind="list", columns=columns, texts=columns)}
        return Call(name=f"{self.stage}.began", operation=operation, outputs=outputs, after=after)

    def recovered(self, settled: str, step: str, after: tuple[str, ...]) -> Choose:
        """Fail as :meth:`rolled_back` does, by the names of alarms that may be off again.

        Where a metric does not tell the new model from the old one, an alarm goes off for no longer
        than the new one is asked. What came after :meth:`began`, whose output ``step`` has, is this
        update's.
        """
        changes = Result(f"{self.stage}.history", "changes")
        turned = [
            apply(Function.COUNT, apply(Function.WHERE, changes, _SUMMARY, "eq", words))
            for words in _TURNED
        ]
        each = ForEach(
            name=f"{self.stage}.histories",
            items=Result(step, BEGAN),
            body=Graph((self._history(),)),
            collect={
                _COLUMNS[0]: Field(Item(), _COLUMNS[0]),
                "went_off": Any(tuple(Compare("gt", count, 0) for count in turned)),
            },
            max_concurrency=1,
            at_most=MOST_ALARMS,
        )
        off = apply(Function.WHERE, Result(each.name, "items"), "went_off", "eq", True)
        return self._instead(settled, (each,), "; alarms that went off: [", off, after)

    def _history(self) -> Call:
        request: dict[str, Tree] = {
            "AlarmName": Field(Item(), _COLUMNS[0]),
            "HistoryItemType": "StateUpdate",
            "StartDate": Field(Item(), _SINCE),
        }
        changes = Output(
            ("AlarmHistoryItems",), kind="list", columns=(_SUMMARY,), texts=(_SUMMARY,)
        )
        return Call(
            name=f"{self.stage}.history",
            operation=Operation("cloudwatch", "DescribeAlarmHistory", request),
            outputs={"changes": changes},
        )

    def _instead(
        self,
        settled: str,
        asked: tuple[Step, ...],
        words: str,
        alarms: Tree,
        after: tuple[str, ...],
    ) -> Choose:
        """Fail a run whose configuration does not serve."""
        cause = join(
            *(
                f"stage {self.stage}: it serves ",
                Result(settled, "config"),
                " instead of ",
                self.config,
                ": ",
            ),
            *(Result(settled, "reason"), words, _names(alarms), "]"),
        )
        failed = Fail(name=f"{self.stage}.verified", error="EndpointRolledBack", cause=cause)
        return Choose(
            name=f"{self.stage}.rolled_back",
            condition=Compare("ne", Result(settled, "config"), self.config),
            then=Graph((*asked, failed)),
            otherwise=Graph(),
            after=after,
        )

    def _named(self, made: str) -> Expression[str]:
        return join(self.beginning, f"-{made}")

    def _described(self, name: str, names: list[Tree]) -> Call:
        operation = Operation("cloudwatch", "DescribeAlarms", {"AlarmNames": names})
        return Call(name=name, operation=operation, outputs=_OUTPUTS)

    def _request(self, made: str) -> dict[str, Anything]:
        return {
            "AlarmName": self._named(made),
            "Namespace": "AWS/SageMaker",
            "Dimensions": [
                {"Name": name, "Value": value} for name, value in self.dimensions.items()
            ],
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
