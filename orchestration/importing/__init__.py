"""Pipelines from what others have: a request that starts a training job, so far.

Pure: a request becomes the description of a pipeline and notes on what differs. The notes are no
list of what somebody thought of: the pipeline is lowered again, and its request compared.
"""

from orchestration.importing.imported import Imported, Note
from orchestration.importing.training_jobs import from_request

__all__ = ["Imported", "Note", "from_request"]
