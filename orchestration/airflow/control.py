"""Control flow: the operators that make no call."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.common.compat.sdk import BaseBranchOperator, BaseOperator

from orchestration.airflow.context import fail, value
from orchestration.airflow.parameters import problems_with
from orchestration.airflow.timing import pause
from orchestration.airflow.triggers import PauseTrigger
from orchestration.expressions import Json

if TYPE_CHECKING:
    from airflow.sdk import Context


class InputsOperator(BaseOperator):
    """The first task: what the run was started with, refused whole where anything is wrong."""

    def __init__(self, *, parameters: Sequence[Mapping[str, Any]], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.parameters = parameters

    def execute(self, context: Context) -> Any:
        """The parameters of this run."""
        known = {parameter["name"] for parameter in self.parameters}
        given = {name: v for name, v in context["params"].items() if name in known}
        problems = problems_with(self.parameters, {**(context["dag_run"].conf or {}), **given})
        if problems:
            fail(context, "InvalidInput", "; ".join(problems))
        return given


class OutputsOperator(BaseOperator):
    """The last task: what the run has to show."""

    def __init__(self, *, outputs: Json, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.outputs = outputs

    def execute(self, context: Context) -> Any:
        """The outputs of the workflow."""
        return value(context, self.outputs)


class ChooseOperator(BaseBranchOperator):
    """Goes one of two ways."""

    def __init__(
        self,
        *,
        condition: Json,
        then: Sequence[str],
        otherwise: Sequence[str],
        loop: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.condition = condition
        self.then = list(then)
        self.otherwise = list(otherwise)
        self.loop = loop

    def choose_branch(self, context: Context) -> list[str]:
        """The first tasks of the way to go."""
        holds = value(context, self.condition, self.loop)
        if not isinstance(holds, bool):
            fail(context, "ExpressionError", f"the condition is {holds!r}, no boolean")
        return self.then if holds else self.otherwise


class RequireOperator(BaseOperator):
    """A condition that must hold for the run to go on."""

    def __init__(
        self,
        *,
        condition: Json,
        error: str,
        cause: Json,
        loop: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.condition = condition
        self.error = error
        self.cause = cause
        self.loop = loop

    def execute(self, context: Context) -> Any:
        """No outputs; fail where the condition does not hold."""
        if not value(context, self.condition, self.loop):
            fail(context, self.error, str(value(context, self.cause, self.loop)))
        return {}


class JoinOperator(BaseOperator):
    """Where the two ways meet again."""

    def __init__(self, *, loop: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.loop = loop

    def execute(self, context: Context) -> Any:
        """No outputs."""
        return {}


class WaitOperator(BaseOperator):
    """A pause, without a worker."""

    def __init__(
        self,
        *,
        seconds: Json,
        loop: Mapping[str, Any] | None = None,
        deferrable: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.seconds = seconds
        self.loop = loop
        self.deferrable = deferrable

    def execute(self, context: Context) -> Any:
        """No outputs."""
        seconds = value(context, self.seconds, self.loop)
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            fail(context, "ExpressionError", f"{seconds!r} is no number of seconds")
        if self.deferrable:
            until = time.time() + pause(seconds)
            self.defer(trigger=PauseTrigger(until=until), method_name="execute_complete")
        time.sleep(pause(seconds))
        return {}

    def execute_complete(self, context: Context, event: Any = None) -> Any:
        """No outputs."""
        return {}


class FailOperator(BaseOperator):
    """The end of the run, failed."""

    def __init__(
        self,
        *,
        error: str,
        cause: Json,
        loop: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.error = error
        self.cause = cause
        self.loop = loop

    def execute(self, context: Context) -> Literal[None]:
        """Fail."""
        fail(context, self.error, str(value(context, self.cause, self.loop)))
