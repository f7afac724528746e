"""The size of an evaluation's results, which Step Functions must pass on in one piece."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestration.errors import Problem
from orchestration.stages.evaluation.fields import EvaluationFields

MOST_BYTES: Final = 256 * 1024
"""https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html"""
MOST_WITHOUT_JOB: Final = 500
_URI: Final = 150
"""Characters of a checkpoint's URI that is known to a run only; those of a training job have some
110: bucket, workspace, run, stage and the checkpoint's own name."""
_NAME: Final = 30
"""Characters of a checkpoint's own name."""
_AROUND_ROW: Final = 30
"""``{"item":{"checkpoint":"",…}},`` around one."""
_AROUND_NUMBER: Final = 24
"""The quotes, colon and comma of a metric, and a number of 64 bits as most of them are written."""


def problems(stage: EvaluationFields) -> Iterator[Problem]:
    """Yield that there are more results than a run can pass on without a job that decides."""
    if stage.subject != "checkpoints" or stage.decided_by_job:
        return
    way_out = "need a report: {}, a job that decides"
    if stage.recorded is not None:
        way_out = "need a report: {image: …}, a job that decides"
    most, row = stage.max_checkpoints, row_bytes(stage)
    if most > MOST_WITHOUT_JOB:
        yield Problem("max_checkpoints", f"more than {MOST_WITHOUT_JOB} {way_out}")
    elif most * row > MOST_BYTES:
        size = f"{most} results of about {row} bytes"
        limit = f"of {MOST_BYTES // 1024} KiB, which Step Functions passes on"
        yield Problem("max_checkpoints", f"{size} are more than the limit {limit}; they {way_out}")


def row_bytes(stage: EvaluationFields) -> int:
    """Return about how many bytes the result of one checkpoint has."""
    place = stage.checkpoints
    uri = len(place) + len(stage.checkpoint_prefix) + _NAME if isinstance(place, str) else _URI
    return _AROUND_ROW + uri + sum(len(name) + _AROUND_NUMBER for name in stage.measured())
