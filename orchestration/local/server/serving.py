"""The process of an embedded AWS, once it is forked: it serves on a free loopback port.

It ends when its user's end of the socket `control` is shut or gone, or on SIGTERM or SIGINT. It
then stops every process that it started and removes its directory.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestration.local import engine
from orchestration.local.account.account import Account
from orchestration.local.account.clock import Clock
from orchestration.local.events import sources
from orchestration.local.iam.enforcing import Enforcement
from orchestration.local.iam.principals import policies
from orchestration.local.policies.deciding import enforce
from orchestration.local.processes.children import remove
from orchestration.local.processes.environment import environment
from orchestration.local.s3 import concurrency, contents
from orchestration.local.sagemaker.workloads import Workloads
from orchestration.local.server.application import Application
from orchestration.local.server.options import Options
from orchestration.local.server.simulation import Simulation

LOOPBACK = "127.0.0.1"


def serve(options: Options, control: socket.socket) -> list[str]:
    """Serve until the user has enough; return the services that were called."""
    logging.basicConfig(level=logging.ERROR)
    # The engine logs each failed state as an error; the history of a run has it too.
    logging.getLogger("moto").setLevel(logging.CRITICAL)
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    threading.Thread(target=_watch_user, args=(control, ended), daemon=True).start()
    directory = Path(options.directory)
    server, simulation = build(options, directory)
    try:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ready = {"pid": os.getpid(), "port": server.server_port}
        control.sendall(json.dumps(ready).encode() + b"\n")
        ended.wait()
    finally:
        simulation.close()
        remove(directory)
    return sorted({call.service for call in simulation.account.recorder.calls()})


def build(
    options: Options, directory: Path, workloads: Workloads | None = None
) -> tuple[Any, Simulation]:
    """Create a server that does not serve yet, and its simulation."""
    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server

    moto = DomainDispatcherApplication(create_backend_app)
    applications: list[Application] = []
    server: Any = make_server(
        LOOPBACK,
        0,
        lambda environ, start_response: applications[0](environ, start_response),
        threaded=True,
        request_handler=MotoRequestHandler,
    )
    server.daemon_threads = True
    clean = environment(f"http://{LOOPBACK}:{server.server_port}", options.region)
    # For clients in this process (those of the engine) and for moto, which reads its port.
    os.environ.clear()
    os.environ.update(clean, MOTO_PORT=str(server.server_port))
    clock = Clock(options.time_scale)
    cache = None if options.job_cache is None else Path(options.job_cache)
    account = Account(options.region, clock, directory, clean, options.devices_per_host, cache)
    simulation = Simulation(account, workloads)
    sources.install()
    contents.install(account.faults)
    concurrency.install()
    rules = _once(moto.lock, sources.install_rules)
    enforced = options.enforce_iam
    load_engine = _loading_engine(moto.lock, account, enforced=enforced)
    enforcement = Enforcement(simulation.tags) if enforced else None
    if enforced:
        enforce(policies)
    applications.append(Application(simulation, moto, load_engine, rules, enforcement))
    return server, simulation


def _loading_engine(lock: Any, account: Account, *, enforced: bool) -> Callable[[], None]:
    """Return a function that loads Step Functions on its first call, which takes a second."""
    endpoint = account.environment["AWS_ENDPOINT_URL"]
    return _once(
        lock,
        lambda: engine.install(
            account.clock, account.activity, account.faults, endpoint, enforced=enforced
        ),
    )


def _once(lock: Any, install: Callable[[], None]) -> Callable[[], None]:
    """Return a function that installs something on its first call."""
    done: list[bool] = []

    def load() -> None:
        # moto's own lock around its imports on demand: no two threads may import parts of it.
        with lock:
            if not done:
                install()
                done.append(True)

    return load


def _watch_user(control: socket.socket, ended: threading.Event) -> None:
    while control.recv(1024):
        pass
    ended.set()
