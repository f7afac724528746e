"""What every test stands on: no way to the real AWS, nothing left running, public oracles."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import ipaddress
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Container, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import psutil
import pytest

from tests import oracles

if TYPE_CHECKING:
    from orchestration.local.airflow import LocalAirflow

_FAKE_AWS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_SESSION_TOKEN": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_REGION": "us-east-1",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "BOTO_CONFIG": os.devnull,
}


def _scrub_environment() -> None:
    """Take away what leads to an account, and give Airflow a home of this run's own.

    Done once and before any import of Airflow or botocore, which read it while they load.
    """
    for name in list(os.environ):
        if name.startswith(("AWS_", "AIRFLOW__", "AIRFLOW_CONN_", "AIRFLOW_VAR_", "SAGEMAKER_")):
            del os.environ[name]
    os.environ.update(_FAKE_AWS)
    home = tempfile.mkdtemp(prefix="orchestration-tests-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    os.environ["AIRFLOW_HOME"] = home
    os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
    os.environ["AIRFLOW__CORE__DAGS_FOLDER"] = str(Path(home) / "dags")
    os.environ["AIRFLOW__USAGE_DATA_COLLECTION__ENABLED"] = "False"


_scrub_environment()

# How long a process may take to end once its test has; the test of this guard shortens it.
_GRACE_S = float(os.environ.get("ORCHESTRATION_TESTS_GRACE_S", "120"))

# How long an example takes depends on what else this machine does.
hypothesis.settings.register_profile("tests", deadline=None)
hypothesis.settings.load_profile("tests")


@pytest.fixture(autouse=True)
def _fake_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test the fake credentials, whatever an earlier one left in the environment."""
    for name, value in _FAKE_AWS.items():
        monkeypatch.setenv(name, value)


class NetworkRefused(RuntimeError):
    """A test tried to leave this machine."""


def _is_local(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if host is None or host in ("", "localhost", socket.gethostname()):
        return True
    try:
        address = ipaddress.ip_address(str(host))
    except ValueError:
        return str(host).endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def _refuse_the_network(event: str, args: tuple[Any, ...]) -> None:
    if event == "socket.getaddrinfo":
        host = args[0]
    elif event == "socket.connect" and isinstance(args[1], tuple):
        host = args[1][0]
    else:
        return
    if not _is_local(host):
        raise NetworkRefused(f"{event} to {host!r}: tests talk to this machine only")


def pytest_configure() -> None:
    """Close the way out for this process; an audit hook cannot be taken off again."""
    sys.addaudithook(_refuse_the_network)


@pytest.fixture(scope="session", autouse=True)
def _clients_share() -> None:
    """Let the clients of all tests share what botocore makes for each: a thousand accounts' worth.

    The embedded AWS and a local Airflow do so in their processes. Where no file of tests imports
    botocore, few clients are made.
    """
    if "botocore" in sys.modules:
        from orchestration.local.server.sessions import load_once

        load_once()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return how many workers `-n auto` means: half as many again as cores, since tests wait."""
    return (psutil.cpu_count() or 1) * 3 // 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what runs the in-container toolkit where it is not installed."""
    if importlib.util.find_spec("sagemaker_training") is None:
        skip = pytest.mark.skip(reason="the in-container toolkit needs the `demo` extra")
        for item in items:
            if item.get_closest_marker("toolkit"):
                item.add_marker(skip)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have recorded of themselves: minutes and commands of the tutorial."""
    for report in terminalreporter.getreports("passed"):
        if report.when == "call" and report.user_properties:
            said = ", ".join(f"{value} {name}" for name, value in report.user_properties)
            terminalreporter.write_line(f"{report.nodeid}: {said}")


def _below(pid: int | str) -> set[int]:
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_bytes().split()):
            found |= {child, *_below(child)}
    return found


def _descendants() -> set[int]:
    """Return the processes below this one, which Linux says in a tenth of psutil's time."""
    for _ in range(5):
        # Something that has just ended, whose children are somebody else's now, or no Linux.
        with contextlib.suppress(OSError):
            return _below("self")
    return {child.pid for child in psutil.Process().children(recursive=True)}


def _is_of(process: psutil.Process, before: Container[int]) -> bool:
    """Return whether a process or an ancestor was there before: a local Airflow forks.

    So does what embedded accounts are forked from, and may stay, but none of them may.
    """
    from orchestration.local.server import keeper

    own = keeper.of_this_process().pid
    try:
        family = {process.pid, *(parent.pid for parent in process.parents())}
    except psutil.NoSuchProcess:
        return True
    return process.pid == own or any(pid in before for pid in family - {own})


def _still_runs(process: psutil.Process) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        # Python's own book-keeper of shared memory lives as long as this process.
        return "resource_tracker" not in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(autouse=True)
def _leaves_no_process(_fake_credentials: None) -> Iterator[None]:
    """Fail a test that leaves a process behind, and end that process."""
    before = _descendants()
    yield
    left = []
    for pid in _descendants() - before:
        with contextlib.suppress(psutil.NoSuchProcess):
            left.append(psutil.Process(pid))
    left = [child for child in left if not _is_of(child, before)]
    deadline = time.monotonic() + _GRACE_S
    while (left := [child for child in left if _still_runs(child)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    if left:
        commands = []
        for child in left:
            try:
                commands.append(" ".join(child.cmdline()) or child.name())
                child.kill()
            except psutil.NoSuchProcess:
                continue
        pytest.fail(f"left {len(commands)} processes running: {commands}", pytrace=False)


@pytest.fixture(scope="session")
def airflow() -> Iterator[LocalAirflow]:
    """One Airflow for all that runs DAGs, since its start takes eight seconds of a processor."""
    from orchestration.local.airflow import LocalAirflow

    with LocalAirflow() as started:
        # So that the process which it forks is there before the first test.
        started.ready()
        yield started


@pytest.fixture(scope="session")
def asl_validators() -> Iterator[oracles.AslValidators]:
    """Say what two public validators object to in a definition: nothing, in a good one."""
    with oracles.node_tool("validate.mjs", "--stream") as tool:
        yield oracles.AslValidators(tool)


@pytest.fixture(scope="session")
def jsonata_reference() -> Iterator[oracles.JsonataReference]:
    """Evaluate an expression with bindings as JSONata's own authors do."""
    with oracles.node_tool("evaluate.mjs") as tool:
        yield oracles.JsonataReference(tool)
