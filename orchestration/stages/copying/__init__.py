"""Copies from S3 to S3, object by object or by DataSync."""

from orchestration.stages.copying.destination import S3Destination

__all__ = ["S3Destination"]
