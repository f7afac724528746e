"""DAG files as pipelines, by the arguments of their Amazon provider's operators.

The file is parsed and never run. What its syntax does not say - values that functions return, tasks
made in loops - nothing here knows, and it is told.

https://airflow.apache.org/docs/apache-airflow-providers-amazon/stable/operators/sagemaker.html
"""

from orchestration.importing.dags.importing import from_dag
from orchestration.importing.dags.own import described

__all__ = ["described", "from_dag"]
