"""Stages of the model registry."""

from orchestration.stages.registry.decision import ModelApproval, ModelApprovalOutputs
from orchestration.stages.registry.registration import (
    ModelRegistration,
    ModelRegistrationOutputs,
    RegistrationRequests,
)

__all__ = [
    "ModelApproval",
    "ModelApprovalOutputs",
    "ModelRegistration",
    "ModelRegistrationOutputs",
    "RegistrationRequests",
]
