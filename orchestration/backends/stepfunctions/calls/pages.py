"""A listing of many pages as states: one page is asked for, and again while there is another.

What the pages come to is in one variable, which each page brings up to date.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from orchestration.backends.jsonata import (
    enclosed,
    field,
    field_value,
    literal,
    path,
    quote,
    render,
)
from orchestration.backends.stepfunctions.calls.outputs import page
from orchestration.backends.stepfunctions.calls.polling import Polling
from orchestration.backends.stepfunctions.calls.tasks import task
from orchestration.backends.stepfunctions.names import Scope, state, variable
from orchestration.backends.stepfunctions.states import Rule, States, choice
from orchestration.execution import wording
from orchestration.graph import Call, Pages

_PAGE: Final = "$p"
_RESULT: Final = "$states.result"
_COUNT: Final = "Pages"
_TOKEN: Final = "Next"  # noqa: S105 - of a listing


@dataclass(frozen=True)
class Listing:
    """A call that is sent for each page."""

    step: Call
    pages: Pages
    scope: Scope
    states: States

    def write(self, following: str) -> str:
        """Write the states; the first one's name comes back."""
        name, more = state(self.step.name), state(self.step.name, "More")
        own = variable(self.step.name)
        start = {name: fold.start for name, fold in self.pages.folds.items()}
        self.states.counters[own] = field_value({**start, _COUNT: 0, _TOKEN: ""})
        left = f"{self._own(_TOKEN)} != '' and {self._own(_COUNT)} < {self.pages.most}"
        check = choice(Rule(left, name), default=following)
        values = self.scope.assigned(self.scope.entering.get(self.step.name, ()))
        if values:
            check["Assign"] = values
        self.states.last(more, check)
        asking = task(self.step.operation, self.scope, self.step.retry, step=self.step.name)
        asking["Arguments"] = enclosed(self._request())
        source = f"{self.step.operation.name} {self.step.name}"
        refusal = Polling(self.step, self.scope, self.states, following).refusal(
            "$states.errorOutput"
        )
        asking["Catch"] = [
            self.states.overflow(wording.TOO_LARGE_RESPONSE, source),
            {"ErrorEquals": ["States.ALL"], "Output": refusal, "Next": self.states.failed()},
        ]
        asking["Assign"] = {own: enclosed(self._folded())}
        return self.states.add(name, asking, more)

    def _own(self, name: str) -> str:
        return field(f"${variable(self.step.name)}", name)

    def _request(self) -> str:
        token = self._own(_TOKEN)
        first = render(self.step.operation.request, self.scope)
        following = f"{{{quote(self.pages.field)}: {token}}}"
        return f"$merge([{first}, {token} = '' ? {{}} : {following}])"

    def _folded(self) -> str:
        """Return the JSONata of the variable after a page."""
        name, outputs = self.step.name, self.step.outputs
        raw = {(name, output): field(_PAGE, output) for output in outputs}
        scope = replace(self.scope, raw={**self.scope.raw, **raw})
        token = path(_RESULT, self.pages.token)
        fields = {
            **{key: render(fold.then, scope) for key, fold in self.pages.folds.items()},
            _COUNT: f"{self._own(_COUNT)} + 1",
            _TOKEN: f"$exists({token}) ? {token} : {literal('')}",
        }
        taken = page(outputs, self.step.operation, _RESULT, name, scope)
        written = ", ".join(f"{quote(key)}: {text}" for key, text in fields.items())
        return f"({_PAGE} := {taken}; {{{written}}})"
