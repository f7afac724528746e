"""The pipeline as a user writes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import ValidationError

from orchestration.errors import PipelineError, Problem, meant
from orchestration.graph import ParameterSpec, Workflow
from orchestration.pipeline.afterwards.sections import SECTIONS, placed
from orchestration.pipeline.defaults.merging import Merged, merged
from orchestration.pipeline.description import Description
from orchestration.pipeline.draft import Draft
from orchestration.pipeline.lowering import lower, of_requests
from orchestration.pipeline.pinning.in_python import Built, settled
from orchestration.pipeline.problems import problems
from orchestration.pipeline.schedules.firing import differences
from orchestration.pipeline.triggers import checking as triggers
from orchestration.pipeline.unusable import unusable
from orchestration.pipeline.wording import from_validation
from orchestration.stages import Stage
from orchestration.stages.assuming import assuming
from orchestration.stages.kinds import Kinds, StageSource
from orchestration.strategies.images.table import suffixes


class Pipeline(Description):
    """Stages of distributed training, told once, for Airflow and for Step Functions.

    Building one reports every mistake at once as a :class:`~orchestration.errors.PipelineError`.
    """

    # A slot, and no private attribute of Pydantic's: copies with other fields must not take it
    # along, and it has no part in equality and pickling.
    __slots__ = ("_built", "_workflow")
    if TYPE_CHECKING:
        _built: Built
        _workflow: Workflow

    def __init__(self, /, **data: Any) -> None:
        data, built, found = settled(data)
        with _beside(placed(found, data)):
            self._describe(data, Kinds())
        object.__setattr__(self, "_built", built)

    def _describe(self, data: dict[str, Any], kinds: Kinds) -> None:
        """Fill in the fields, or raise everything that is wrong."""
        named, misnamed = _named(data)
        if wrong := unusable(named):
            raise PipelineError(wrong)
        try:
            # What BaseModel.__init__ does, with a context.
            self.__pydantic_validator__.validate_python(named, self_instance=self, context=kinds)
        except ValidationError as error:
            draft = Draft.read(named, kinds)
            emptied = {problem.section for problem in misnamed if not named[problem.section]}
            of_fields = (p for p in from_validation(error, named, kinds) if p.field not in emptied)
            found = [*of_fields, *problems(draft), *misnamed]
            wrong = _grouped([*found, *of_requests(draft, found)])
            raise PipelineError(placed(wrong, named)) from error
        if misnamed:
            raise PipelineError(placed(misnamed, named))
        self.lower()  # What is wrong with the whole is said at once, not when a backend asks.

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        stages: Iterable[StageSource] = (),
        lock: Mapping[str, Any] | None = None,
    ) -> Self:
        """A pipeline from a YAML file, read safely, with its lock file where it has one.

        ``stages`` are kinds of stages beside the package's own and installed ones: modules, their
        names, or classes. ``lock`` is the content of a lock file that counts instead of the one
        beside the YAML.
        """
        from orchestration.pipeline.files import read

        kinds = Kinds.of(stages)
        document, found, origin = read(Path(path), lock)
        data = document.data
        pipeline = cls._with(document.defaults, data, kinds, placed(found, data))
        object.__setattr__(pipeline, "_workflow", replace(pipeline.lower(), origin=origin))
        return pipeline

    @classmethod
    def parse(cls, data: Mapping[str, Any], *, stages: Iterable[StageSource] = ()) -> Self:
        """A pipeline from plain data, as a YAML file holds it; ``stages`` as in :meth:`load`."""
        defaults = merged({str(key): value for key, value in data.items()})
        return cls._with(defaults, defaults.data, Kinds.of(stages), defaults.problems)

    @classmethod
    def _with(
        cls, defaults: Merged, data: dict[str, Any], kinds: Kinds, found: Sequence[Problem]
    ) -> Self:
        """Return the pipeline of data in which ``defaults`` are, if nothing was found wrong."""
        try:
            with _beside(found):
                return cls._of(data, kinds)
        except PipelineError as error:
            raise PipelineError(defaults.placed(error.problems)) from error

    @classmethod
    def _of(cls, data: Mapping[str, Any], kinds: Kinds) -> Self:
        pipeline = cls.__new__(cls)
        pipeline._describe({str(key): value for key, value in data.items()}, kinds)
        return pipeline

    def to_yaml(self, folder: str | Path | None = None) -> str:
        """Return the YAML that reads back as this pipeline.

        `folder` is where the file will lie: paths of code become relative to it, and the digest of
        code that has not changed is left to :meth:`load`, so that the file follows the code.
        Raises :class:`~orchestration.errors.PipelineError` with the place of all that YAML has no
        form for: values that are only computed, classes of stages that can't be imported by name.
        """
        from orchestration.pipeline.writing import written

        place = None if folder is None else Path(folder)
        return written(self, place, type(self).parse)

    def _repr_html_(self) -> str:
        from orchestration.pipeline.showing.summary import html

        return html(self, self.facts())

    def lower(self) -> Workflow:
        """The pipeline as a checked workflow, lowered once."""
        try:
            return self._workflow
        except AttributeError:
            # No model is assigned to, so what it is lowered to stays right.
            object.__setattr__(self, "_workflow", self._lowered())
            return self._workflow

    def built(self) -> Built | None:
        """Return how Python built it, and what a lock file may pin of that; ``None`` for YAML."""
        return getattr(self, "_built", None)

    def carried(self) -> Workflow:
        """Return the workflow as it is rendered for others, with the data of the pipeline's file.

        A pipeline of Python has what :meth:`to_yaml` writes, or the problems of that.
        """
        from orchestration.pipeline.writing import origin

        workflow = self.lower()
        if workflow.origin:
            return workflow
        try:
            return replace(workflow, origin=origin(self, type(self).parse))
        except PipelineError as error:
            return replace(workflow, unwritten=error.problems)

    def _lowered(self) -> Workflow:
        try:
            return lower(self)
        except PipelineError as error:
            raise PipelineError(placed(error.problems, self._sections())) from error

    def _sections(self) -> dict[str, Sequence[Stage]]:
        return {section: getattr(self, section) for section in SECTIONS}

    def parameter_specs(self) -> tuple[ParameterSpec, ...]:
        """Return the parameters of runs."""
        return self.lower().parameters

    def warnings(self) -> list[Problem]:
        """Return probable mistakes, and what is not known to work."""
        of_stages = (
            replace(warning, stage=stage.name)
            for stage in self._by_default()
            for warning in stage.warnings()
        )
        return [
            *self._in_unknown_region(),
            *self._scheduled_without(),
            *self._fires_otherwise(),
            *triggers.warnings(Draft.of(self)),
            *placed(of_stages, self._sections()),
        ]

    def unscheduled(self) -> tuple[str, ...]:
        """Return the parameters that a scheduled run has no value for, unless others give one."""
        schedule = self.schedule_spec()
        if schedule is None:
            return ()
        return tuple(
            spec.name
            for spec in self.parameter_specs()
            if spec.default is None and spec.name not in schedule.told
        )

    def untriggered(self) -> tuple[str, ...]:
        """Return the parameters that a triggered run has no value for, unless others give one."""
        return triggers.lacking(Draft.of(self))

    def _in_unknown_region(self) -> Iterator[Problem]:
        if self.region is not None and self.region not in suffixes():
            close = meant(self.region, suffixes())
            yield Problem("region", f"{self.region!r} is not known to this version{close}")

    def _scheduled_without(self) -> Iterator[Problem]:
        if missing := self.unscheduled():
            yield Problem(
                "schedule.parameters",
                f"scheduled runs have no value for {', '.join(missing)}; give each a default or a "
                "value here, or else give it to dag(…, parameters=…), which fails without, and to "
                "`orchestrate deploy`",
            )

    def _fires_otherwise(self) -> Iterator[Problem]:
        if self.schedule is not None:
            for problem in differences(self.schedule.spec()):
                yield problem.within("schedule")

    def facts(self) -> dict[str, list[str]]:
        """Return the facts that follow from each stage's numbers: sizes of clusters and batches.

        Where they are parameters, from the defaults.
        """
        told = {stage.name: list(stage.facts()) for stage in self._by_default()}
        return {name: lines for name, lines in told.items() if lines}

    def _by_default(self) -> list[Stage]:
        defaults = Draft.of(self).defaults()
        return [assuming(stage, defaults) for stage in self.every_stage]


@contextmanager
def _beside(found: Sequence[Problem]) -> Iterator[None]:
    """Raise what was found, before all that is wrong besides."""
    try:
        yield
    except PipelineError as error:
        if not found:
            raise
        raise PipelineError(dict.fromkeys([*found, *error.problems])) from error
    if found:
        raise PipelineError(found)


def _named(data: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The data with its stages as lists of named ones, and what can't be brought into them."""
    wrong: list[Problem] = []
    named = dict(data)
    for section in SECTIONS:
        stages = data.get(section)
        if isinstance(stages, Mapping):
            named[section], misnamed = _listed(stages)
            wrong += [replace(problem, section=section) for problem in misnamed]
        elif isinstance(stages, Stage):
            # A model is iterable, and would be read as a list of its fields.
            named[section] = [stages]
            text = f"expected a list of stages, got the stage {stages.name!r} alone"
            wrong.append(Problem(section, f"{text}; write [<the stage>]"))
    return named, wrong


def _listed(stages: Mapping[Any, Any]) -> tuple[list[Any], list[Problem]]:
    named: list[Any] = []
    found: list[Problem] = []
    for name, stage in stages.items():
        place = str(name)
        if isinstance(stage, Mapping):
            own = stage.get("name", name)
            named.append({**stage, "name": name})
        elif isinstance(stage, Stage):
            own = stage.name
            named.append(stage)
        else:
            own = name
            found.append(
                Problem("", f"expected a mapping with a kind, got {stage!r:.60}", stage=place)
            )
        if own != name:
            found.append(
                Problem("", f"has another name in it: {own!r}; leave that out", stage=place)
            )
    return named, found


def _grouped(problems: Sequence[Problem]) -> list[Problem]:
    """The problems stage by stage, in the order in which each stage comes up first."""
    groups: dict[tuple[str | None, str], list[Problem]] = {}
    for problem in problems:
        key = (problem.stage, problem.field if problem.stage is None else "")
        groups.setdefault(key, []).append(problem)
    return [problem for group in groups.values() for problem in group]
