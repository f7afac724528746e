"""The subject of every check: a pipeline with the values of its runs, and the account."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestration.deploy.account import Account
from orchestration.expressions import Json, Tree
from orchestration.graph import Workflow
from orchestration.preflight.findings import Finding
from orchestration.preflight.places import place
from orchestration.preflight.reader import Reader
from orchestration.preflight.requests import Request

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline
    from orchestration.runs.airflow import Api


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """A pipeline with the values of its runs, and the account that they would run in."""

    pipeline: Pipeline
    workflow: Workflow
    account: Account
    reader: Reader
    requests: tuple[Request, ...]
    runs: tuple[Mapping[str, Json], ...]
    """The parameters of each kind of run: started by a person, by a schedule, by an event."""
    role: str | None = None
    """The role of the user's own that `deploy --role` would use."""
    connection: str | None = None
    """The connection of Airflow's tasks; none is looked for without."""
    airflow: Api | None = None
    """The API server that knows it; ``None``: it is looked up in the Airflow installed here."""

    def of(self, *names: str) -> Iterator[Request]:
        """Yield the requests of these operations."""
        return (request for request in self.requests if request.name in names)

    def where(self, request: Request, *path: str | int) -> str:
        """Return the place in the user's description that a value of a request comes from."""
        tree: Tree = request.tree(*path) if path else None
        return place(self.pipeline, request.step, tree, request.turn)


Check = Callable[[Examination], Iterator[Finding]]
