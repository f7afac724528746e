"""Pipelines from what others have: a request that starts a training job, a SageMaker Pipeline.

Pure: data becomes the description of a pipeline and notes on what differs. The notes are no list
of what somebody thought of: the pipeline is lowered again, and its requests compared.
"""

from orchestration.importing.imported import Imported, Note
from orchestration.importing.kinds import from_data
from orchestration.importing.sagemaker_pipelines import from_definition
from orchestration.importing.training_jobs import from_request

__all__ = ["Imported", "Note", "from_data", "from_definition", "from_request"]
