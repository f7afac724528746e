"""A pipeline as a notebook shows it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from orchestration import notebook
from orchestration.pipeline.description import Description
from orchestration.pipeline.showing.drawing import boxes, svg
from orchestration.stages.kinds import name_of


def html(pipeline: Description, facts: Mapping[str, Sequence[str]]) -> str:
    """Return a pipeline's picture, its parameters and what follows from its stages' numbers."""
    stages = pipeline.every_stage
    kinds = {stage.name: name_of(type(stage)).replace("_", " ") for stage in stages}
    parameters = [
        (name, each.type, _default(each.default), each.description)
        for name, each in pipeline.declared_parameters().items()
    ]
    return notebook.block(
        f"Pipeline {pipeline.name}",
        notebook.line(pipeline.description) if pipeline.description else "",
        svg(boxes(stages, kinds), pipeline.name),
        notebook.table(("parameter", "type", "default", "description"), parameters),
        notebook.table(
            ("stage", "size"), [(name, "\n".join(told)) for name, told in facts.items()]
        ),
    )


def _default(value: object) -> str:
    return "each run gives it" if value is None else json.dumps(value, ensure_ascii=False)
