"""The callbacks of a DAG at a run's end, called as Airflow's DAG processor calls them."""

from __future__ import annotations

import os
import uuid
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import psutil
import structlog
from airflow.dag_processing.processor import _execute_dag_callbacks
from airflow.sdk.execution_time import supervisor

if TYPE_CHECKING:
    from airflow.callbacks.callback_requests import DagCallbackRequest
    from airflow.sdk import DAG


def call_back(dag: DAG, request: DagCallbackRequest) -> None:
    """Call what a DAG wants called; an error is logged, and changes nothing."""
    in_process: Any = supervisor.InProcessTestSupervisor
    log = structlog.get_logger(logger_name="callbacks")
    attending = in_process(
        id=uuid.uuid4(),
        pid=os.getpid(),
        process=psutil.Process(),
        process_log=log,
        client=in_process._api_client(dag),
    )
    attending.comms = supervisor.InProcessSupervisorComms(supervisor=attending)
    bag = cast("Any", SimpleNamespace(dags={dag.dag_id: dag}))
    with supervisor.set_supervisor_comms(attending.comms):
        _execute_dag_callbacks(bag, request, log)
