"""Airflow's own API server over a database of its own: ``python airflow_server.py DAG_FILE…``.

It prints its port, and ends when its standard input does. Nothing schedules: runs stay queued.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from pathlib import Path

import uvicorn
from airflow.api_fastapi.app import create_app
from airflow.configuration import conf
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db
from airflow.utils.db import initdb
from airflow.utils.session import create_session


def main(paths: list[Path]) -> None:
    initdb()
    with create_session() as session:
        DagBundlesManager().sync_bundles_to_db(session=session)  # type: ignore[no-untyped-call]  # Airflow leaves it unannotated
    folder = Path(conf.get_mandatory_value("core", "dags_folder"))
    for path in paths:
        bag = BundleDagBag(dag_folder=path, bundle_path=folder, bundle_name="dags-folder")
        assert not bag.import_errors, bag.import_errors
        sync_bag_to_db(bag, "dags-folder", None)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(apps="core,execution"), log_level="warning"))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    # Airflow logs there, too. Nobody reads on, and a full pipe would stop the server.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    server.run(sockets=[listening])


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main([Path(each) for each in sys.argv[1:]])
