"""Models in S3: a ``model.tar.gz`` or a folder of files, as the stages that read them must say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orchestration.errors import Problem
from orchestration.refs import FirstOf, Ref
from orchestration.stages.serving.containers import SequenceFields, ServedContainer
from orchestration.stages.stage import Stage


def problems(stage: Stage, stages: Mapping[str, Stage]) -> Iterator[Problem]:
    """Yield the error of a packed model that is looked for as a folder, or the reverse."""
    yield from _problems(stage, stages)
    for path, container in stage.others if isinstance(stage, SequenceFields) else ():
        for problem in _problems(container, stages):
            yield problem.within(path)


def _problems(holder: Stage | ServedContainer, stages: Mapping[str, Stage]) -> Iterator[Problem]:
    said = getattr(holder, "model_archive", None)
    data: object = getattr(holder, "model_data", None)
    for part in data.parts if isinstance(data, FirstOf) else (data,):
        packed = is_packed(part, stages)
        if packed is None or said is None or packed is said:
            continue
        what = f"{part.output} of {part.stage!r}" if isinstance(part, Ref) else repr(part)
        if packed:
            yield Problem("model_data", f"{what} is a model.tar.gz; give model_archive: true")
        else:
            yield Problem("model_archive", f"{what} is a folder and no model.tar.gz; remove it")
        return


def is_packed(value: object, stages: Mapping[str, Stage]) -> bool | None:
    """Return whether a place in S3 is a ``model.tar.gz``; ``None``: it is not known."""
    seen = set[Ref[object]]()
    while isinstance(value, Ref) and value not in seen:
        seen.add(value)
        stage = stages.get(value.stage)
        if stage is None or stage.for_each is not None:
            return None
        outputs = type(stage).outputs
        repeated = outputs.repeated(stage, value.output)
        if repeated is None:
            return outputs.is_archive(stage, value.output)
        value = repeated
    if not isinstance(value, str):
        return None
    return value.endswith((".tar.gz", ".tgz")) or (False if value.endswith("/") else None)
