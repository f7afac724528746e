"""Kinds of stages, by the name that a file gives them: the package's own, and those of others.

A kind from outside is a class with a field ``kind``, outputs and ``lower``. It comes with a
distribution, by an entry point of the group ``orchestration.stages`` (its name is the kind), or is
named together with the pipeline: its module, or the class itself. Neither can take the place of
another kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args, get_origin

from orchestration.errors import PipelineError, Problem, meant, near
from orchestration.refs import STAGE_NAME
from orchestration.stages.outputs import Outputs
from orchestration.stages.stage import Stage

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "orchestration.stages"
"""The group of entry points; https://packaging.python.org/en/latest/specifications/entry-points/"""

OWN: Final[Mapping[str, str]] = {
    "data_staging": "orchestration.stages.staging:DataStaging",
    "training_job": "orchestration.stages.training:TrainingJob",
    "checkpoint_evaluation": "orchestration.stages.evaluation.stage:CheckpointEvaluation",
    "deployment": "orchestration.stages.deployment:Deployment",
    "aws_call": "orchestration.stages.aws_call:AwsCall",
    "processing_job": "orchestration.stages.processing.stage:ProcessingJob",
    "batch_transform": "orchestration.stages.serving.transform:BatchTransform",
    "approval": "orchestration.stages.people:Approval",
    "pipeline": "orchestration.stages.composing:NestedPipeline",
    "model_registration": "orchestration.stages.registry:ModelRegistration",
    "model_approval": "orchestration.stages.registry:ModelApproval",
    "tuning_job": "orchestration.stages.tuning:TuningJob",
    "fail": "orchestration.stages.flow.failing:Fail",
    "pause": "orchestration.stages.flow.pausing:Pause",
}
"""The kinds of this package, each with its module, which is imported when it is asked for."""

StageSource: TypeAlias = str | ModuleType | type[Stage]
"""A module with kinds of stages, or its name, or one kind."""


@dataclass(frozen=True)
class Kinds:
    """The kinds that a pipeline may take. Installed ones are looked for when one is unknown."""

    named: Mapping[str, type[Stage]] = field(default_factory=dict)
    """Those that were named together with the pipeline."""

    @classmethod
    def of(cls, sources: Iterable[StageSource]) -> Kinds:
        """Collect kinds from modules and classes.

        Raises :class:`PipelineError` for a kind that is not well formed or defined twice, and
        ``ImportError`` for a module that can't be imported.
        """
        classes = [kind for source in sources for kind in _classes(source)]
        found = list(dict.fromkeys(classes))
        wrong = [problem for kind in found for problem in _malformed(kind)]
        if wrong:
            raise PipelineError(wrong)
        counts = Counter(map(name_of, found))
        twice = [name for name, count in counts.items() if count > 1 or name in OWN]
        if twice:
            raise PipelineError([_twice(name, found) for name in twice])
        return cls({name_of(kind): kind for kind in found})

    def get(self, name: str) -> type[Stage] | None:
        """Return a kind, ``None`` for an unknown one; raises :class:`PipelineError` for a bad one.

        Only a kind that is neither the package's nor named here is looked for among installed ones.
        """
        if name in self.named:
            return self.named[name]
        if name in OWN:
            own: type[Stage] = _imported(OWN[name])
            return own
        points = self._installed.get(name, ())
        return _loaded(name, points) if points else None

    def names(self) -> tuple[str, ...]:
        """Return the names of all kinds."""
        return tuple(dict.fromkeys([*OWN, *self.named, *self._installed]))

    def classes(self) -> dict[str, type[Stage]]:
        """Return all kinds; raises :class:`PipelineError` for an installed one that is bad."""
        kinds = ((name, self.get(name)) for name in self.names())
        return {name: kind for name, kind in kinds if kind is not None}

    def unknown(self, stage: Mapping[Any, Any]) -> str:
        """Return the error of a stage with a kind that there is not, or with none."""
        name, names = stage.get("kind"), self.names()
        if name is None:
            misnamed = (
                f"; write kind instead of {k}" for k, value in stage.items() if value in names
            )
            return f"has no kind; give it one of kind: {', '.join(names)}{next(misnamed, '')}"
        hint = meant(str(name), names)
        if not hint:
            hint = near(str(name), names) + (
                "; name the module of a kind of your own: `orchestrate --stages MODULE ...`, "
                "dag(..., stages=[...]), Pipeline.load(..., stages=[...])"
            )
        return f"there is no kind {name!r}{hint}"

    @cached_property
    def _installed(self) -> Mapping[str, tuple[EntryPoint, ...]]:
        # Reads the metadata of every distribution, so only what needs it pays for it.
        from importlib.metadata import entry_points

        points: dict[str, tuple[EntryPoint, ...]] = {}
        for point in entry_points(group=GROUP):
            points[point.name] = (*points.get(point.name, ()), point)
        return points


def name_of(kind: type[Stage]) -> str:
    """Return the name that files give a kind; empty where it has none."""
    declared = kind.model_fields.get("kind")
    if declared is None or get_origin(declared.annotation) is not Literal:
        return ""
    names = get_args(declared.annotation)
    return names[0] if names == (declared.default,) and isinstance(names[0], str) else ""


def _classes(source: StageSource) -> Iterator[type[Stage]]:
    """Yield the kinds in a module: those of its stages that have a ``kind``, and not ours."""
    if isinstance(source, type):
        yield source
        return
    if not isinstance(source, str | ModuleType):
        raise TypeError(f"expected a module, its name or a class, got {source!r:.60}")
    module = import_module(source) if isinstance(source, str) else source
    found = [value for value in vars(module).values() if _is_foreign(value)]
    if not found:
        message = "holds no stage: a subclass of orchestration.stages.Stage with a field `kind`"
        raise PipelineError([Problem(module.__name__, message)])
    yield from found


def _is_foreign(value: Any) -> bool:
    return (
        isinstance(value, type)
        and issubclass(value, Stage)
        and "kind" in value.model_fields
        and not value.__module__.startswith("orchestration.")
    )


def _malformed(kind: type[Stage]) -> Iterator[Problem]:
    """Yield the errors of a kind that hold for all its stages."""
    place = f"{kind.__module__}.{kind.__qualname__}"
    if not issubclass(kind, Stage):
        yield Problem(place, "is not a subclass of orchestration.stages.Stage")
        return
    name = name_of(kind)
    if not name:
        yield Problem(place, 'has no kind; give it a field: kind: Literal["query"] = "query"')
    elif not STAGE_NAME.fullmatch(name):
        yield Problem(place, f"its kind {name!r} is not snake case: feature_store")
    if kind.lower is Stage.lower:
        yield Problem(place, "does not say how it is lowered; define lower(self, context)")
    if not isinstance(kind.outputs, Outputs):
        yield Problem(place, "its outputs are not Outputs(...) of a dataclass of references")


def _twice(name: str, kinds: Iterable[type[Stage]]) -> Problem:
    places = [f"{kind.__module__}.{kind.__qualname__}" for kind in kinds if name_of(kind) == name]
    if name in OWN:
        places.append(OWN[name].replace(":", "."))
    return Problem(name, f"is a kind of stage in {' and in '.join(places)}; give one another name")


def _imported(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _loaded(name: str, points: tuple[EntryPoint, ...]) -> type[Stage]:
    """Load the kind of a distribution's entry point."""
    described = [f"{point.value} ({_distribution(point)})" for point in points]
    if len({point.value for point in points}) > 1:
        message = f"is a kind of stage in {' and in '.join(described)}; uninstall one of them"
        raise PipelineError([Problem(name, message)])
    try:
        kind = points[0].load()
    except (ImportError, AttributeError) as error:
        message = f"the installed kind of stage {described[0]} can't be loaded: {error}"
        raise PipelineError([Problem(name, message)]) from error
    if not isinstance(kind, type):
        raise PipelineError([Problem(name, f"{described[0]} is not a class")])
    wrong = list(_malformed(kind))
    if not wrong and name_of(kind) != name:
        wrong = [Problem(name, f"{described[0]} is of the kind {name_of(kind)!r}")]
    if wrong:
        raise PipelineError(wrong)
    return kind


def _distribution(point: EntryPoint) -> str:
    return "unknown distribution" if point.dist is None else point.dist.name
