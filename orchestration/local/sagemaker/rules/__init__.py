"""The rules of SageMaker that a pipeline can break.

Which images exist is not known here: an image of ECR is checked for its region only, and any other
name stands for an image of this machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.local.account.protocol import ServiceError
from orchestration.local.account.rules import Rule, broken
from orchestration.local.sagemaker.rules.components import COMPONENTS
from orchestration.local.sagemaker.rules.hosting import HOSTING
from orchestration.local.sagemaker.rules.jobs import JOBS
from orchestration.local.sagemaker.rules.monitoring import MONITORING
from orchestration.local.sagemaker.rules.registry import REGISTRY
from orchestration.local.sagemaker.rules.shared import SHARED
from orchestration.local.sagemaker.rules.tuning import TUNING

RULES: Final[Mapping[str, Rule]] = {
    **SHARED,
    **JOBS,
    **TUNING,
    **HOSTING,
    **COMPONENTS,
    **REGISTRY,
    **MONITORING,
}


def refusal(rule: str, **values: object) -> ServiceError:
    """Return the error of a request that breaks a rule."""
    return broken(RULES, rule, **values)
