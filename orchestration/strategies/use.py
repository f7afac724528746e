"""The setting of a strategy, and findings about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """The setting of a strategy, as far as it is known before the run."""

    framework: str | None = None
    """``pytorch``, ``tensorflow``, ``mxnet``, ``huggingface``, ``xgboost``, …; ``None`` if the
    container is unknown."""
    framework_version: str | None = None
    """Of the framework itself; for Hugging Face that of the base."""
    base: str | None = None
    """With Hugging Face: ``pytorch`` or ``tensorflow``."""
    image: str | None = None
    """The registry path set by the user, if it is known; ``None``: the framework's image."""
    cuda: str | None = None
    """CUDA in the container, where neither a tag nor a version tells: ``12.4``."""
    instance_types: tuple[str, ...] = ()
    """Every candidate: of the cluster itself, its fallbacks, its preferences."""
    instance_count: int | None = None
    """The count of the only candidate, or the least of several."""
    clusters: tuple[tuple[str, int], ...] = ()
    """Candidates whose type and count are both known; degrees are checked against each."""
    groups: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """A heterogeneous cluster: instance type and count by the group's name. It replaces the
    candidates."""
    group_names: tuple[str, ...] = ()
    """Every group's name, if the machines of some are unknown before the run."""
    entry_point: str | None = None
    has_source: bool = False
    """True if the toolkit starts the user's own code."""

    @property
    def named_groups(self) -> tuple[str, ...]:
        """Return the names of a heterogeneous cluster's groups."""
        return tuple(dict.fromkeys((*self.group_names, *self.groups)))


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem or a doubt about a strategy, known before it is paid for."""

    path: str
    """A path inside the stage: ``strategy.processes_per_host``."""
    message: str
    """The problem or the doubt, its reason, and the remedy."""
    certain: bool
    """True if it can't work; ``False``: a warning, often that the sources do not say."""
