"""An Airflow plugin: it registers the timetable, and loads the operators once.

Airflow parses each file in a process of its own, forked from one that has imported only what files
import of ``airflow``; the operators would be imported anew for every file, every time. Plugins are
loaded before (``airflow.jobs.job.Job`` tells its listeners that it starts), so that the forked
processes have them, and share their memory. ``test_the_dag_processor_loads_the_operators`` fails
where that changes; parsing is then slower, and nothing else.
"""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from typing import Any

from airflow.listeners import hookimpl
from airflow.plugins_manager import AirflowPlugin

from orchestration.airflow.dags.timetable import FireTimes

_COMMAND = "airflow.cli.commands.dag_processor_command"
_log = logging.getLogger(__name__)


class _Preloading:
    """Listens for the start of a DAG processor; other components have no use for operators."""

    @hookimpl
    def on_starting(self, component: Any) -> None:
        if _COMMAND in sys.modules:
            try:
                import_module("orchestration.airflow.dags.building")
                import_module("orchestration.airflow.dags.reading")
            except Exception:
                # A DAG file that needs them says so itself; others are parsed all the same.
                _log.warning("the operators can't be loaded", exc_info=True)


class OrchestrationPlugin(AirflowPlugin):
    """Found by Airflow through the package's entry point."""

    name = "orchestration"
    listeners = [_Preloading()]  # noqa: RUF012 (Airflow's own type)
    timetables = [FireTimes]  # noqa: RUF012 (Airflow's own type)
