"""The region of a pipeline, against the region of whatever is about to run it."""

from __future__ import annotations

from orchestration.execution import wording


def mismatch(pipeline: str, region: str | None, *, place: str, other: str | None) -> str | None:
    """Return why a pipeline can't run in a place of another region; ``None`` where it can.

    A pipeline without a region runs wherever it is started, and a place may leave the region open.

    >>> mismatch("digits", "us-west-2", place="the session", other="us-east-1")
    'pipeline digits runs in us-west-2, and the session is for us-east-1; use one for us-west-2, \
or change the region of the pipeline'
    """
    if region is None or other is None or region == other:
        return None
    return wording.filled(
        wording.OTHER_REGION, pipeline=pipeline, region=region, place=place, other=other
    )
