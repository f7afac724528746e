"""Runs of a DAG the newest of which goes on, and older ones end (``overlap: stop_older``).

No task can end another run, or list the runs of its DAG, so that older runs end themselves: each
run leaves its id in a variable of Airflow when it begins, and looks there before each of its tasks
and while it waits. Nothing depends on who writes that variable last: a task begins only while
Airflow counts no other run of the DAG that is running. Of runs that begin together, or whose tasks
a person clears, all but one therefore wait until they end as superseded, or the others have ended.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from airflow.sdk.exceptions import AirflowRescheduleException

from orchestration.airflow.context import ASKING, fail
from orchestration.airflow.dags.overlapping import UNDER_WAY, skip
from orchestration.airflow.triggers import FollowTrigger
from orchestration.execution.timing import pause
from orchestration.execution.wording import BY_NEWER, SUPERSEDED, filled

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

_LOOK_S: Final = 60.0
"""Seconds between looks whether older runs have ended."""
_BEGIN: Final = "begin"
"""The method of a task that has waited for its run's turn."""


class _Begun(NamedTuple):
    """A run that has begun."""

    run: str
    number: int
    """The times that a person has cleared some of its tasks."""
    event: str | None


class Turn:
    """The look of a task at the runs that have begun after its own.

    ``starts``: whether it is the task with which a run begins. ``event`` names the event that has
    started the run, if one has: it may come twice, and start two runs that are one.
    """

    def __init__(self, context: Context, *, starts: bool = False, event: str | None = None) -> None:
        self._ti: Any = context["ti"]
        self._dag_id = context["dag"].dag_id
        self._own = context["run_id"]
        self._number = context["dag_run"].clear_number or 0
        self._event = event
        self._is_new = starts and not self._number
        self._begun: list[_Begun] = []
        self.seen: str | None = None
        """The variable, as it was read or written last."""

    @property
    def variable(self) -> str:
        """The name of the variable with the runs under way, in the order in which they began."""
        return f"{self._dag_id}.begun"

    def newer(self) -> str | None:
        """Return the newest run that has begun after this one and is under way."""
        with ASKING:
            self._read()
            runs = [each.run for each in self._begun]
            if self._own in runs:
                runs = runs[runs.index(self._own) + 1 :]
            elif self._is_new:
                runs = []
            return next((run for run in reversed(runs) if self._count(UNDER_WAY, run)), None)

    def same(self) -> str | None:
        """Return the run under way that the same event has started; to be asked after `newer`."""
        if self._event is None:
            return None
        with ASKING:
            others = [each for each in self._begun if each.run != self._own]
            runs = [each.run for each in others if each.event == self._event]
            return next((run for run in runs if self._count(UNDER_WAY, run)), None)

    def has_come(self) -> bool:
        """Return whether no other run goes on; leave that this one has begun, unless it is there.

        To be asked after :meth:`newer`.
        """
        with ASKING:
            # A person who clears tasks of a run that has ended lets it begin again.
            if (self._own, self._number) not in [(run, number) for run, number, _ in self._begun]:
                self._announce()
            return self._count(("running",)) <= self._count(("running",), self._own)

    def _read(self) -> None:
        # A DAG file is parsed all the time, and only tasks need it.
        from airflow.sdk import Variable

        self.seen = Variable.get(self.variable, default=None)
        self._begun = [_Begun(*each) for each in json.loads(self.seen or "[]")]

    def _announce(self) -> None:
        from airflow.sdk import Variable

        known = next((each.event for each in self._begun if each.run == self._own), None)
        others = [
            each
            for each in self._begun
            if each.run != self._own and self._count(UNDER_WAY, each.run)
        ]
        self._begun = [*others, _Begun(self._own, self._number, self._event or known)]
        self.seen = json.dumps(self._begun)
        text = f"Runs of {self._dag_id} under way, the newest last"
        Variable.set(self.variable, self.seen, description=text)

    def _count(self, states: tuple[str, ...], run: str | None = None) -> int:
        runs = None if run is None else [run]
        return int(self._ti.get_dr_count(dag_id=self._dag_id, run_ids=runs, states=list(states)))


def wait_for_turn(task: BaseOperator, context: Context, turn: Turn, *, deferrable: bool) -> None:
    """Return when no other run goes on; fail where a newer one has begun.

    Until then the task leaves its worker, and begins again.
    """
    if newer := turn.newer():
        fail(context, *superseded(newer))
    if same := turn.same():
        skip(context, same, "stop_older")
    if turn.has_come():
        return
    task.log.info("waits until other runs have ended (overlap: stop_older)")
    until = time.time() + pause(_LOOK_S)
    if deferrable:
        trigger = FollowTrigger(watches="[]", connection={}, until=until)
        task.defer(trigger=trigger, method_name=_BEGIN)
    # A task that kept its worker could keep the newest run from its first task; each would wait for
    # the other.
    moment = datetime.fromtimestamp(until, tz=UTC)
    raise AirflowRescheduleException(moment)  # type: ignore[no-untyped-call]  # Airflow's


def superseded(newer: str) -> tuple[str, str]:
    """Return the error and the cause of a run that a newer one has taken the place of."""
    return SUPERSEDED, filled(BY_NEWER, newer=newer)
