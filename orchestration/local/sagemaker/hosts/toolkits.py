"""The in-container toolkits, and the images that contain them."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from orchestration.local.sagemaker.outcomes import JobFailed


@dataclass(frozen=True)
class Toolkit:
    """The program that starts a script in the images of a framework."""

    framework: str
    package: str
    python: str
    """The environment variable that names an interpreter with the toolkit."""
    setup: str
    """The command that installs it."""

    @property
    def training_module(self) -> str:
        """The entry point, as `SAGEMAKER_TRAINING_MODULE` names it."""
        return f"{self.package}.training:main"

    def interpreter(self, environment: Mapping[str, str]) -> str:
        """Return the Python that has the toolkit; raise :class:`JobFailed` if there is none."""
        reason = self.missing(environment)
        if reason is not None:
            raise JobFailed(f"ClientError: {reason}")
        return environment.get(self.python) or sys.executable

    def missing(self, environment: Mapping[str, str]) -> str | None:
        """Return why the toolkit cannot start a script on this machine; ``None`` if it can."""
        named = environment.get(self.python)
        if named:
            executable = os.access(named, os.X_OK)
            return None if executable else f"{self.python} is {named!r}, which is not executable"
        if importlib.util.find_spec(self.package) is not None:
            return None
        return (
            f"the embedded AWS runs {self.framework} images with {self.package}, "
            f"which is not installed: {self.setup}; or set {self.python} to a Python that has it"
        )


PYTORCH = Toolkit(
    "PyTorch",
    "sagemaker_pytorch_container",
    "ORCHESTRATION_LOCAL_PYTORCH_PYTHON",
    "pip install 'sagemaker-orchestration[demo]'",
)
TENSORFLOW = Toolkit(
    "TensorFlow",
    "sagemaker_tensorflow_container",
    "ORCHESTRATION_LOCAL_TENSORFLOW_PYTHON",
    "`make setup-tensorflow`",
)
MXNET = Toolkit(
    "MXNet",
    "sagemaker_mxnet_container",
    "ORCHESTRATION_LOCAL_MXNET_PYTHON",
    "pip install --no-deps sagemaker-mxnet-training",
)
_BY_REPOSITORY = ((r"tensorflow", TENSORFLOW), (r"mxnet", MXNET))


def toolkit(image: str) -> Toolkit:
    """Return the toolkit of an image, by its repository's name; by default PyTorch's."""
    repository = image.rpartition("/")[2]
    for pattern, match in _BY_REPOSITORY:
        if re.search(pattern, repository):
            return match
    return PYTORCH
