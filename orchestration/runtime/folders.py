"""Where a SageMaker container keeps things.

https://docs.aws.amazon.com/sagemaker/latest/dg/amazon-sagemaker-toolkits.html
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping


@dataclass(frozen=True)
class Folders:
    """The folders of a training container: below `/opt/ml`, or SAGEMAKER_BASE_DIR where it is set.

    >>> Folders.from_environment({"SAGEMAKER_BASE_DIR": "/jobs/7"}).checkpoints.as_posix()
    '/jobs/7/checkpoints'
    """

    base: Path
    inputs: Path
    """Holds a folder per channel."""
    checkpoints: Path
    """Copied to S3 while the job runs, and back when it is started again."""
    model: Path
    """Becomes model.tar.gz."""
    output: Path
    """Becomes output.tar.gz."""
    failure: Path
    """A file: what DescribeTrainingJob shows as FailureReason."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Folders:
        """Read the variables of the toolkit; `environ` is `os.environ` by default."""
        environ = os.environ if environ is None else environ
        base = Path(environ.get("SAGEMAKER_BASE_DIR") or "/opt/ml")
        return cls(
            base=base,
            inputs=Path(environ.get("SM_INPUT_DIR") or base / "input") / "data",
            checkpoints=base / "checkpoints",
            model=Path(environ.get("SM_MODEL_DIR") or base / "model"),
            output=Path(environ.get("SM_OUTPUT_DATA_DIR") or base / "output" / "data"),
            failure=Path(environ.get("SM_OUTPUT_DIR") or base / "output") / "failure",
        )

    def channel(self, name: str) -> Path:
        """Where the data of an input channel is."""
        return self.inputs / name
