"""Which strategy starts a layout on an instance, by the rows that validation reads, too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from orchestration.planning.search.layouts import Family, Layout, strategies
from orchestration.planning.search.space import Space
from orchestration.planning.search.task import Task
from orchestration.strategies import Finding, Strategy, Use, findings


@dataclass(frozen=True, slots=True)
class Start:
    """A strategy that can start a layout."""

    strategy: Strategy | None
    """``None``: none can."""
    certain: bool
    """Whether the sources leave no doubt that it runs on the instances."""
    remarks: tuple[str, ...]
    """Why not, or what is not known."""


_Degrees = tuple[Family, int, bool, bool, bool, bool]


def _degrees(layout: Layout) -> _Degrees:
    """Which degrees there are, not how high: what the rules are about."""
    tensor, pipeline = layout.tensor > 1, layout.pipeline > 1
    return (layout.family, layout.zero, tensor, pipeline, layout.context > 1, layout.expert > 1)


class Starts:
    """What starts the layouts of a task, looked up once per kind of layout and instance type."""

    def __init__(self, task: Task, space: Space) -> None:
        self._task = task
        self._space = space
        self._known: dict[tuple[_Degrees, str, bool], Start] = {}

    def usable(self, layout: Layout, name: str, count: int) -> bool:
        """Whether some strategy starts the layout as surely as the space asks for."""
        start = self.of(layout, name, count)
        return start.strategy is not None and (start.certain or self._space.unverified)

    def of(self, layout: Layout, name: str, count: int) -> Start:
        """How a layout is started; the same for all degrees above one."""
        key = (_degrees(layout), name, count > 1)
        if key not in self._known:
            self._known[key] = self.exactly(layout, name, count)
        return self._known[key]

    def remarks(self, every: Iterable[Layout], name: str, count: int) -> tuple[str, ...]:
        """Why layouts can't be started, each reason once."""
        starts = (self.of(one, name, count) for one in every)
        return tuple(dict.fromkeys(remark for start in starts for remark in start.remarks))

    def exactly(self, layout: Layout, name: str, count: int) -> Start:
        """The first strategy without a doubt, else the first that may work, else none.

        A framework's version that is newer than the sources is told of, but no reason to doubt; an
        instance type that they do not name is.
        """
        refused: list[str] = []
        doubtful: Start | None = None
        for strategy in strategies(layout, self._task.framework.name):
            found = self._findings(strategy, name, count, version=True)
            if any(one.certain for one in found):
                refused += [one.message for one in found if one.certain]
                continue
            remarks = tuple(one.message for one in found)
            if not found or not self._findings(strategy, name, count, version=False):
                return Start(strategy, certain=True, remarks=remarks)
            doubtful = doubtful or Start(strategy, certain=False, remarks=remarks)
        return doubtful or Start(None, certain=True, remarks=tuple(refused))

    def _findings(
        self, strategy: Strategy, name: str, count: int, *, version: bool
    ) -> list[Finding]:
        allowed = self._space.strategies
        if allowed is not None and strategy.kind not in allowed:
            message = f"{strategy.kind} is not among the strategies that are allowed"
            return [Finding("strategy", message, certain=True)]
        framework = self._task.framework
        use = Use(
            framework=framework.name,
            framework_version=framework.version if version else None,
            image=framework.image if version else None,
            base="pytorch" if framework.name == "huggingface" else None,
            instance_types=(name,),
            instance_count=count,
            has_source=True,
        )
        return findings(strategy, use)
