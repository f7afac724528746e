"""Stages in which people decide."""

from orchestration.stages.people.approval import Announcement, Approval, ApprovalOutputs

__all__ = ["Announcement", "Approval", "ApprovalOutputs"]
