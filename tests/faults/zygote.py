"""A process that has imported everything, and forks: an account, or a direct run, in no time.

Each line of standard input is an order, `{"kind": "account" | "direct", ...}`; the answer is the
line `{"pid": N}`. Forked processes end with this one. The order `{"kind": "definition", ...}` has
no answer: the state machine is parsed here, and no account parses it again.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import pickle
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from orchestration.local.engine.loading import remember

_SERVICES = (
    "s3",
    "s3control",
    "fsx",
    "sagemaker",
    "sagemaker-runtime",
    "application-autoscaling",
    "sns",
    "iam",
    "events",
    "scheduler",
    "stepfunctions",
)
"""What the pipelines and their deployment call."""


def main() -> None:
    """Fork for each order until standard input ends."""
    _preload()
    gc.freeze()
    reading, writing = os.pipe()
    # Nobody waits for the children.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        order = json.loads(line)
        if order["kind"] == "definition":
            remember(order["definition"])
            gc.freeze()
            continue
        pid = os.fork()
        if not pid:
            os.close(writing)
            _serve(order, reading)
        sys.stdout.write(json.dumps({"pid": pid}) + "\n")
        sys.stdout.flush()


def _preload() -> None:
    from orchestration.local.run import direct_runs  # noqa: F401
    from orchestration.local.server import loading, serving  # noqa: F401
    from tests.faults import accounts, holding, stand_ins  # noqa: F401

    loading.load(_SERVICES)


def _serve(order: dict[str, Any], reading: int) -> None:
    """Do the order in this forked process, which never returns."""
    from orchestration.local.server import loading

    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        threading.Thread(target=_end_with_parent, args=(reading,), daemon=True).start()
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for descriptor in (1, 2):
            os.dup2(log, descriptor)
        loading.seed()
        if order["kind"] == "account":
            _account(order)
        else:
            _direct(order)
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _end_with_parent(reading: int) -> None:
    os.read(reading, 1)
    os._exit(1)


def _account(order: dict[str, Any]) -> None:
    from orchestration.local.server.options import Options
    from orchestration.local.server.serving import build
    from tests.faults.holding import Holding
    from tests.faults.stand_ins import workloads

    logging.getLogger("moto").setLevel(logging.CRITICAL)
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    directory = Path(order["directory"])
    options = Options(str(directory), time_scale=order["time_scale"])
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    server, simulation = build(options, directory, workloads(order["work_s"]))
    server.app = Holding(server.app)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    whole = directory / "port.new"
    whole.write_text(str(server.server_port))
    whole.rename(directory / "port")
    ended.wait()
    simulation.close()


def _direct(order: dict[str, Any]) -> None:
    """Start a run, whose process will be killed."""
    from orchestration.local.run import direct_runs
    from tests.faults.accounts import Account

    run = pickle.loads(Path(order["run"]).read_bytes())
    aws = Account.at(order["port"], order["time_scale"])
    direct_runs.follow(
        aws, run["workflow"], run["values"], run["run_id"], print, workspace=run["workspace"]
    )


if __name__ == "__main__":
    main()
