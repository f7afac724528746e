"""A pipeline's DAG in a folder of DAGs, on this machine or in S3, from which Airflow reads it.

Its files lie in a folder of the pipeline's name, beside a list of what was put there: what that
list does not hold is not this pipeline's, and is never overwritten or deleted.
"""

from orchestration.deploy.dags.contents import contents
from orchestration.deploy.dags.placing import FileChange, Placement, placement, warnings
from orchestration.deploy.dags.stores import Bucket, Folder, Store

__all__ = [
    "Bucket",
    "FileChange",
    "Folder",
    "Placement",
    "Store",
    "contents",
    "placement",
    "warnings",
]
