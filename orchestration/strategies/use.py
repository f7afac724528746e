"""Where a strategy is to work, and what is found about that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Where a strategy is to work, as far as it is known before the run."""

    framework: str | None = None
    """``pytorch``, ``tensorflow``, ``mxnet``, ``huggingface``, ``xgboost``, …; ``None``: nothing is
    known of the container."""
    framework_version: str | None = None
    """Of the framework itself; for Hugging Face that of the base."""
    base: str | None = None
    """With Hugging Face: ``pytorch`` or ``tensorflow``."""
    image: str | None = None
    """The registry path that the user gave, if it is known; ``None``: the framework's image."""
    instance_types: tuple[str, ...] = ()
    """Every candidate: of the cluster itself, its fallbacks, its preferences."""
    instance_count: int | None = None
    """Of the one candidate, or the least of several."""
    clusters: tuple[tuple[str, int], ...] = ()
    """Candidates whose type and count are both known: degrees are held against each of them."""
    groups: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """A heterogeneous cluster: instance type and count by the group's name. It takes the place of
    the candidates."""
    group_names: tuple[str, ...] = ()
    """Every group's name, where the machines of some are not known before the run."""
    entry_point: str | None = None
    has_source: bool = False
    """Whether the toolkit starts code of the user's own."""

    @property
    def named_groups(self) -> tuple[str, ...]:
        """The names of a heterogeneous cluster's groups."""
        return tuple(dict.fromkeys((*self.group_names, *self.groups)))


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know about a strategy before it is paid for."""

    path: str
    """Where, as a path inside the stage: ``strategy.processes_per_host``."""
    message: str
    """What is wrong or not known, why, and the way out."""
    certain: bool
    """Whether it can't work; ``False``: a warning, often that the sources do not say."""
