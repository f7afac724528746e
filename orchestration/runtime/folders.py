"""The folders of a SageMaker container.

https://docs.aws.amazon.com/sagemaker/latest/dg/amazon-sagemaker-toolkits.html
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Mapping

_CHANNEL = "SM_CHANNEL_"
_PROCESSING = "config/processingjobconfig.json"
"""In the container of a processing job, and in no other:
https://docs.aws.amazon.com/sagemaker/latest/dg/build-your-own-processing-container.html"""


@dataclass(frozen=True)
class Folders:
    """The folders of a job's container: below `/opt/ml`, or below SAGEMAKER_BASE_DIR.

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
    """A file: what DescribeTrainingJob shows as FailureReason, and DescribeProcessingJob as
    ExitMessage."""
    channels: Mapping[str, Path] = field(default_factory=dict, hash=False)
    """The values of SM_CHANNEL_*, by the rest of the variable's name: TRAINING."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Folders:
        """Read the variables of the toolkit; `environ` is `os.environ` by default."""
        environ = os.environ if environ is None else environ
        base = Path(environ.get("SAGEMAKER_BASE_DIR") or "/opt/ml")
        failure = "message" if (base / _PROCESSING).exists() else "failure"
        return cls(
            base=base,
            inputs=Path(environ.get("SM_INPUT_DIR") or base / "input") / "data",
            checkpoints=base / "checkpoints",
            model=Path(environ.get("SM_MODEL_DIR") or base / "model"),
            output=Path(environ.get("SM_OUTPUT_DATA_DIR") or base / "output" / "data"),
            failure=Path(environ.get("SM_OUTPUT_DIR") or base / "output") / failure,
            channels={
                name[len(_CHANNEL) :]: Path(value)
                for name, value in environ.items()
                if name.startswith(_CHANNEL) and value
            },
        )

    def channel(self, name: str) -> Path:
        """Return the folder of an input channel: SM_CHANNEL_NAME, else a folder of `inputs`.

        >>> Folders.from_environment({"SM_CHANNEL_TRAINING": "data"}).channel("training").as_posix()
        'data'
        """
        return self.channels.get(name.upper(), self.inputs / name)
