"""Estimators of V2 as people write them, and what becomes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration import PipelineError
from orchestration.sagemaker_sdk import from_estimator
from tests.sdk import v2
from tests.sdk.capture import JOB, ROLE, S3, Recorder
from tests.sdk.comparing import different


class Sdk:
    """The SDK's names, with a session that records."""

    def __init__(self, folder: Path) -> None:
        self.code = folder / "src"
        self.code.mkdir()
        (self.code / "train.py").write_text("print('training')\n")
        self.names = v2.names(self.code)
        self.recorder = Recorder()
        self.session = v2.session(self.recorder)

    def made(self, kind: Any = None, **given: Any) -> Any:
        defaults = {
            "entry_point": "train.py",
            "source_dir": str(self.code),
            "role": ROLE,
            "sagemaker_session": self.session,
            "instance_count": 2,
            "instance_type": "ml.p4d.24xlarge",
            "framework_version": "2.2.0",
            "py_version": "py310",
        }
        return (kind or self.names["PyTorch"])(**{**defaults, **given})

    def left(self, estimator: Any, inputs: Any = S3, **given: Any) -> Any:
        """Return what differs between the SDK's request and that of the converted job."""
        self.recorder.requests.clear()
        self.recorder.uploads.clear()
        job = from_estimator(estimator, inputs, **given)
        estimator.fit(inputs, wait=False, job_name=JOB)
        return different(job, self.recorder.request, dict(self.recorder.uploads))


def refusals(estimator: Any, inputs: Any = None, **given: Any) -> dict[str, str]:
    """Return the messages of the refusal, by path."""
    with pytest.raises(PipelineError) as error:
        from_estimator(estimator, inputs or {"training": S3}, **given)
    return {problem.path: problem.message for problem in error.value.problems}
