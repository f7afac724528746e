"""Strategies that start a layout on an instance, by the support rows that validation reads too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from orchestration.planning.search.layouts import Layout, Sort, strategies
from orchestration.planning.search.space import Space
from orchestration.planning.search.task import Task
from orchestration.strategies import Finding, Strategy, Use, device_findings, findings
from orchestration.strategies.facts import facts as facts_of
from orchestration.strategies.images import built_on


@dataclass(frozen=True, slots=True)
class StrategyChoice:
    """The strategy that starts a layout."""

    strategy: Strategy | None
    """``None``: no strategy can."""
    certain: bool
    """The sources leave no doubt that it runs (or that none does) on the instances."""
    remarks: tuple[str, ...]
    """Reasons against strategies, or facts that are unknown."""


StrategyCache = dict[tuple[Sort, str, bool], StrategyChoice]
"""Choices by kind of layout, instance type, and whether there are several instances."""


class StrategyChoices:
    """Strategies for the layouts of a task, looked up once per kind of layout and instance type."""

    def __init__(self, task: Task, space: Space, known: StrategyCache | None = None) -> None:
        """Share `known` with other searches for the task among the same strategies."""
        self._task = task
        self._space = space
        self._known: StrategyCache = {} if known is None else known

    def usable(self, layout: Layout, name: str, count: int) -> bool:
        """Return whether a strategy starts the layout as certainly as the space requires."""
        choice = self.similar(layout, name, count)
        return choice.strategy is not None and (choice.certain or self._space.unverified)

    def similar(self, layout: Layout, name: str, count: int) -> StrategyChoice:
        """Return the choice for some layout with the same degrees above one."""
        key = (layout.sort, name, count > 1)
        if key not in self._known:
            self._known[key] = self.exact(layout, name, count)
        return self._known[key]

    def remarks(self, layouts: Iterable[Layout], name: str, count: int) -> tuple[str, ...]:
        """Return why layouts can't be started, each reason once."""
        choices = (self.similar(layout, name, count) for layout in layouts)
        return tuple(dict.fromkeys(remark for choice in choices for remark in choice.remarks))

    def exact(self, layout: Layout, name: str, count: int) -> StrategyChoice:
        """Return the first strategy that certainly works, else the first that may work, else none.

        A framework version that is newer than the sources gets a remark, but counts as certain; an
        instance type that they do not name is uncertain.
        """
        never = [each.message for each in device_findings(self._use(name, count)) if each.certain]
        if never:
            return StrategyChoice(None, certain=True, remarks=tuple(never))
        refused: list[str] = []
        doubtful: StrategyChoice | None = None
        for strategy in strategies(layout, self._task.framework.name):
            problems = self._findings(strategy, name, count, version=True)
            if any(problem.certain for problem in problems):
                refused += [problem.message for problem in problems if problem.certain]
                continue
            remarks = tuple(problem.message for problem in problems)
            if not problems or not self._findings(strategy, name, count, version=False):
                return StrategyChoice(strategy, certain=True, remarks=remarks)
            doubtful = doubtful or StrategyChoice(strategy, certain=False, remarks=remarks)
        return doubtful or StrategyChoice(None, certain=True, remarks=tuple(refused))

    def _findings(
        self, strategy: Strategy, name: str, count: int, *, version: bool
    ) -> list[Finding]:
        allowed = self._space.strategies
        if allowed is not None and strategy.kind not in allowed:
            message = f"{strategy.kind} is not among the allowed strategies"
            return [Finding("strategy", message, certain=True)]
        use = self._use(name, count)
        if not version:
            # What drives the devices is no question of what the sources name.
            cuda = next((facts["cuda"] for facts in facts_of(strategy, use)), None)
            use = replace(use, framework_version=None, image=None, cuda=cuda)
        return findings(strategy, use)

    def _use(self, name: str, count: int) -> Use:
        framework = self._task.framework
        base, version = None, framework.version
        if framework.name == "huggingface":
            base, version = built_on(version or "", "pytorch") or ("pytorch", None)
        return Use(
            framework=framework.name,
            framework_version=version,
            image=framework.image,
            base=base,
            instance_types=(name,),
            instance_count=count,
            has_source=True,
        )
