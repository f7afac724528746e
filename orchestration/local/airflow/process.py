"""The processes of a local Airflow: ``python -m orchestration.local.airflow.process FD``.

This process loads Airflow and forks the one that runs DAGs, again whenever that one is killed:
loading takes seconds, a fork none. Requests arrive as lines of JSON on standard input; its end
means that the parent process is gone. Events leave as lines of JSON on the file descriptor FD; the
first event of each forked process is its id.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import json
import os
import queue
import sys
import threading
import traceback
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from orchestration.errors import OrchestrationError
from orchestration.execution.clients import mismatch
from orchestration.local.processes.environment import leave_out_user, refuse_real_aws
from orchestration.local.server.sessions import load_once

if TYPE_CHECKING:
    import httpx
    from airflow.sdk import DAG

    from orchestration.local.airflow.loop import Emit


def main(descriptor: int) -> int:
    """Keep a process that serves, until standard input ends; return its exit status."""
    _load_all()
    with os.fdopen(descriptor, "w", encoding="utf-8", buffering=1) as channel:

        def emit(event: Mapping[str, Any]) -> None:
            channel.write(json.dumps(event) + "\n")

        # The end of this process closes the writing end, which ends the forked one.
        reading, writing = os.pipe()
        while True:
            pid = os.fork()
            if not pid:
                os.close(writing)
                threading.Thread(target=_end_with_parent, args=(reading,), daemon=True).start()
                _serve_all(emit)
            emit({"pid": pid})
            _, status = os.waitpid(pid, 0)
            if not os.WIFSIGNALED(status):
                return os.waitstatus_to_exitcode(status)


def _end_with_parent(reading: int) -> None:
    os.read(reading, 1)
    os._exit(1)


def _load_all() -> None:
    """Load what a run needs and prepare the database, without starting a thread."""
    import botocore.handlers
    from airflow import settings
    from airflow.utils.db import initdb

    # Every task creates its own clients.
    load_once()
    inspect.stack = _frames
    _write_without_waiting()
    # Triggers poll by aiohttp (tests/conformance/test_batch_copies.py waits for ever without it).
    botocore.handlers.BUILTIN_HANDLERS.append(("before-sign.s3-control", leave_out_user))
    _read_certificates_once()
    initdb()
    _warm_up()
    settings.get_engine().dispose()  # type: ignore[no-untyped-call]  # Airflow leaves it unannotated
    # What is loaded stays: looking through it for garbage takes a tenth of each run.
    gc.freeze()


def _frames(context: int = 0) -> list[inspect.FrameInfo]:  # noqa: ARG001  (as in the standard library)
    """Return the callers' frames.

    The hooks of Airflow's provider (9.39) look for their operator in them, for each client. They
    need neither lines of source nor modules, the search for which takes a tenth of each run.
    """
    frames, frame = [], inspect.currentframe()
    while frame := frame and frame.f_back:
        code = frame.f_code
        frames.append(
            inspect.FrameInfo(frame, code.co_filename, frame.f_lineno, code.co_name, None, None)
        )
    return frames


def _serve_all(emit: Emit) -> NoReturn:
    requests: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    while True:
        _serve(json.loads(requests.get()), emit)


def _read_certificates_once() -> None:
    """Let triggers share the certificates of authorities, which each reads for its own client.

    That is a tenth of a run, and the embedded AWS has no certificate to check. An aiobotocore that
    reads them elsewhere (3.4, of Amazon MWAA's Airflow 3.2.1) goes on reading them.
    """
    from aiobotocore.httpsession import AIOHTTPSession

    build = getattr(AIOHTTPSession, "_build_verify_context", None)
    if build is None:
        return
    contexts: dict[object, Any] = {}

    def built(session: Any) -> Any:
        verify = session._verify
        if verify not in contexts:
            contexts[verify] = build(session)
        return contexts[verify]

    AIOHTTPSession._build_verify_context = built


def _write_without_waiting() -> None:
    """Let the system write the database when it likes: what must survive is this process's end."""
    from airflow import settings
    from sqlalchemy import event

    @event.listens_for(settings.engine, "connect")
    def configure(connection: Any, _: object) -> None:
        connection.execute("PRAGMA synchronous = OFF")


def _warm_up() -> None:
    """Load what the first task of a run would load: seconds that nobody waits for yet."""
    import boto3
    from airflow.sdk.execution_time import supervisor

    import orchestration.airflow.dags.building
    import orchestration.local.airflow.loop  # noqa: F401  # loaded before it is needed

    for service in ("s3", "sagemaker", "fsx"):
        boto3.Session().client(service, region_name="us-east-1")
    if not hasattr(supervisor.in_process_api_server, "cache_info"):
        # Airflow 3.2 makes its API anew for each task, three seconds of a processor; 3.3 keeps it.
        supervisor.in_process_api_server = functools.lru_cache(1)(supervisor.in_process_api_server)
    _keep_the_newest_version()
    asyncio.run(_first_request(supervisor.in_process_api_server().atransport))


def _keep_the_newest_version() -> None:
    """Let Airflow build the newest version of its API only.

    Airflow 3.3 builds nine, since a worker may be of an older release, which takes four seconds of
    a processor; here the worker is this process. `tests/airflow/test_versions.py` says so when
    there are several again.
    """
    from airflow.api_fastapi.execution_api import versions
    from airflow.api_fastapi.execution_api.routes import execution_api_router
    from cadwyn import HeadVersion, Version, VersionBundle

    try:
        from cadwyn.route_generation import _DELETED_ROUTE_TAG
    except ImportError:
        return  # Of another release of Cadwyn: all versions are built, which is only slower.
    newest = versions.bundle.versions[0].value
    versions.bundle = VersionBundle(HeadVersion(), Version(newest))
    # Routes of older versions only, which Cadwyn expects to find in one.
    execution_api_router.routes = [
        route
        for route in execution_api_router.routes
        if _DELETED_ROUTE_TAG not in getattr(route, "tags", ())
    ]


async def _first_request(transport: httpx.AsyncBaseTransport) -> None:
    """Make the first request, at which Airflow builds the routes of its API in all versions."""
    import httpx

    async with httpx.AsyncClient(transport=transport, base_url="http://in-process.invalid") as api:
        await api.get("/health")


def _read(requests: queue.Queue[str]) -> None:
    for line in sys.stdin:
        requests.put(line)
    # The parent is gone, so nobody needs the run.
    os._exit(0)


def _serve(request: Mapping[str, Any], emit: Emit) -> None:
    from orchestration.local.airflow.loop import Began, run

    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(request["environment"])
    try:
        refuse_real_aws(os.environ)
        dag = _load(Path(request["dag_file"]))
        _check_region(dag, request["environment"]["AWS_REGION"])
        _reach_by_environment(dag)
        moment = request["scheduled"] and datetime.fromisoformat(request["scheduled"])
        began = Began(event=request["event"], scheduled=moment)
        emit({"end": run(dag, request["run_id"], request["conf"], emit, began)})
    except OrchestrationError as error:
        emit({"refused": str(error)})
    except Exception as error:  # must not stop later requests
        traceback.print_exc()
        emit({"refused": f"Airflow cannot run the DAG: {error}"})


def _check_region(dag: DAG, own: str) -> None:
    from orchestration.errors import LocalError

    for region in {getattr(task, "region_name", None) for task in dag.tasks}:
        wrong = mismatch(dag.dag_id, region, place="the embedded AWS", other=own)
        if wrong is not None:
            raise LocalError(wrong)


def _reach_by_environment(dag: DAG) -> None:
    """Define every connection in the environment, so that triggers need no database."""
    for task in dag.tasks:
        conn_id = getattr(task, "aws_conn_id", None)
        if conn_id:
            os.environ[f"AIRFLOW_CONN_{conn_id.upper()}"] = "aws://"


def _load(path: Path) -> DAG:
    """Load the only DAG of a file and write it to the database, as a DAG processor does."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db
    from airflow.utils.session import create_session

    from orchestration.errors import LocalError

    with create_session() as session:
        DagBundlesManager().sync_bundles_to_db(session=session)  # type: ignore[no-untyped-call]  # Airflow leaves it unannotated
    bag = BundleDagBag(
        dag_folder=path, bundle_path=path.parent, bundle_name="dags-folder", safe_mode=False
    )
    if bag.import_errors:
        errors = "\n".join(f"{file}: {error}" for file, error in bag.import_errors.items())
        raise LocalError(f"Airflow cannot import the DAG file\n{errors}")
    if len(bag.dags) != 1:
        raise LocalError(f"expected one DAG in {path}, got {len(bag.dags)} ({', '.join(bag.dags)})")
    sync_bag_to_db(bag, "dags-folder", None)
    [dag] = bag.dags.values()
    return dag


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
