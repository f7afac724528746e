"""Removal of models, and of configurations, that earlier deployments have left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from orchestration.expressions import (
    All,
    Compare,
    Field,
    Function,
    Item,
    Result,
    Tree,
    apply,
    join,
)
from orchestration.graph import (
    Call,
    Choose,
    ErrorPattern,
    ForEach,
    Graph,
    Operation,
    Output,
    Recovery,
    Step,
)
from orchestration.refs import Expression
from orchestration.stages.endpoints.making import Made

_AT_A_TIME: Final = 100
_GONE: Final = ErrorPattern("ValidationException", "Could not find")
_NO_ALARM: Final = ErrorPattern("ResourceNotFound")


@dataclass(frozen=True, slots=True)
class Pruning:
    """The steps that delete all but the newest models of an endpoint or a component.

    What serves stays, and what served before this run: a rollback needs both.
    """

    made: Made
    keep: int
    alarms: tuple[str, ...]
    """The ends of the names of the alarms that belong to each."""
    nouns: tuple[str, ...] = ("EndpointConfig", "Model")
    """The kinds that have one name, of which the first is listed."""

    def steps(self, after: tuple[str, ...]) -> tuple[Step, ...]:
        """Return a listing of the newest, and the deletion of those behind it."""
        stage, listed = self.made.stage.name, f"{self.nouns[0].removeprefix('Endpoint').lower()}s"
        newest = Call(
            name=f"{stage}.newest",
            operation=self._listed({"MaxResults": self.keep}),
            outputs={"rest": Output(("NextToken",), kind="string", default="")},
            after=after,
        )
        rest = Result(newest.name, "rest")
        older = Call(
            name=f"{stage}.older",
            operation=self._listed({"MaxResults": _AT_A_TIME, "NextToken": rest}),
            outputs={
                listed: Output(
                    (f"{self.nouns[0]}s",),
                    kind="list",
                    columns=(self._field,),
                    texts=(self._field,),
                )
            },
        )
        each = ForEach(
            name=f"{stage}.pruned",
            items=Result(older.name, listed),
            body=Graph((self._unless_needed(),)),
            collect={"name": self._item},
            max_concurrency=1,
            at_most=_AT_A_TIME,
        )
        outdated = Choose(
            name=f"{stage}.outdated",
            condition=Compare("ne", rest, ""),
            then=Graph((older, each)),
            otherwise=Graph(),
        )
        return newest, outdated

    def _listed(self, part: dict[str, Tree]) -> Operation:
        request: dict[str, Any] = {
            "NameContains": self.made.prefix,
            "SortBy": "CreationTime",
            "SortOrder": "Descending",
            **part,
        }
        return Operation("sagemaker", f"List{self.nouns[0]}s", request)

    def _unless_needed(self) -> Choose:
        stage = self.made.stage.name
        # No name has a slash: so a name that holds the prefix in its middle is another's.
        is_own = apply(Function.CONTAINS, join("/", self._item), f"/{self.made.prefix}")
        condition = All(
            (
                Compare("eq", is_own, True),
                Compare("ne", self._item, self.made.name),
                Compare("ne", self._item, Result(f"{stage}.look", "config")),
            )
        )
        return Choose(
            name=f"{stage}.unneeded",
            condition=condition,
            then=Graph(self._deletions()),
            otherwise=Graph(),
        )

    def _deletions(self) -> tuple[Call, ...]:
        stage = self.made.stage.name
        calls: list[Call] = []
        for made in self.alarms:
            names: list[Tree] = [join(self._own(), f"-{made}")]
            operation = Operation("cloudwatch", "DeleteAlarms", {"AlarmNames": names})
            calls.append(_deletion(f"{stage}.delete_{made}", operation, _NO_ALARM, calls))
        for noun in self.nouns:
            operation = Operation("sagemaker", f"Delete{noun}", {f"{noun}Name": self._own()})
            calls.append(_deletion(f"{stage}.delete_{noun.lower()}", operation, _GONE, calls))
        return tuple(calls)

    def _own(self) -> Expression[str]:
        """The name again, in a form that tells the permission needed from one for all names."""
        prefix = self.made.prefix
        return join(prefix, apply(Function.REMOVE_PREFIX, self._item, prefix))

    @property
    def _field(self) -> str:
        return f"{self.nouns[0]}Name"

    @property
    def _item(self) -> Field:
        return Field(Item(), self._field)


def _deletion(name: str, operation: Operation, gone: ErrorPattern, before: list[Call]) -> Call:
    after = (before[-1].name,) if before else ()
    return Call(name=name, operation=operation, recoveries=(Recovery(gone, {}),), after=after)
