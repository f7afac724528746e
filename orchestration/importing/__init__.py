"""Pipelines from what others have: a job's request, SageMaker Pipelines, state machines, DAGs.

Pure: data becomes the description of a pipeline and notes on what differs. The notes are no list
of what somebody thought of: the pipeline is lowered again, and its requests compared.
"""

from orchestration.importing.dags import described, from_dag
from orchestration.importing.imported import Imported, Note
from orchestration.importing.kinds import from_data
from orchestration.importing.sagemaker_pipelines import from_definition
from orchestration.importing.state_machines import from_state_machine
from orchestration.importing.training_jobs import from_request

__all__ = [
    "Imported",
    "Note",
    "described",
    "from_dag",
    "from_data",
    "from_definition",
    "from_request",
    "from_state_machine",
]
