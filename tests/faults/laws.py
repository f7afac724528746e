"""What must hold after each cell, on each driver and between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.conformance import normal
from tests.conformance.test_conformance import BACKENDS, Backend
from tests.faults.cell import Cell
from tests.faults.drivers import KINDS_OF_JOBS, Ending
from tests.faults.flagship import BEST, ENDPOINT, OLD

_ENDED = frozenset({"Completed", "Failed", "Stopped"})
_COPIED = frozenset({"Complete", "Failed", "Cancelled"})
_BUSY = frozenset({"PENDING", "EXECUTING", "CANCELING"})
_KEPT = {"Key": "orchestration:keep-for-h", "Value": "24"}
_CHECKPOINTS = 2
_SEARCHED = 2

Endings = Mapping[Backend, Ending]


def broken(cell: Cell, endings: Endings) -> dict[Backend, list[str]]:
    """Return what each driver did wrong."""
    problems = {on: list(_alone(cell, ending)) for on, ending in endings.items()}
    if not cell.killed:
        reference = endings["direct"]
        for on in BACKENDS:
            problems[on] += _differences(endings[on], reference)
    return problems


def _alone(cell: Cell, ending: Ending) -> Iterator[str]:
    yield from _nothing_runs(ending)
    yield from _no_file_system(ending)
    yield from _paid_small(ending) if cell.small else _paid(ending)
    if not cell.small:
        yield from _served(cell, ending)
    if cell.killed and ending.error == "Stopped":
        return
    yield from _concluded(cell, ending)
    if cell.survives != (ending.state == "succeeded"):
        yield f"{ending.state}: {ending.error}: {ending.cause}"


def _concluded(cell: Cell, ending: Ending) -> Iterator[str]:
    """Yield where a run loses its own error, or stages after its end are told of another end."""
    if not cell.last:
        return
    if cell.error not in ending.error:
        yield f"the run's own error {cell.error} has become {ending.error}: {ending.cause}"
    end = f"failed|{ending.error}" if cell.error else "succeeded|"
    expected = {f"{name} {end}" for name in (("alarm", "record") if cell.error else ("record",))}
    messages = [call for call in ending.calls if call.operation == "Publish"]
    sent = {call.request["Message"] for call in messages}
    if sent != expected:
        yield f"{sorted(sent)} and not {sorted(expected)}"
    arrived = {call.request["Message"] for call in messages if not call.error_code}
    refused = expected - arrived
    if refused != (set() if cell.arrives else {f"{cell.row} {end}"}):
        yield f"{sorted(refused)} did not arrive"


def _nothing_runs(ending: Ending) -> Iterator[str]:
    for kind in KINDS_OF_JOBS:
        for name, job in ending.account["sagemaker"][f"{kind}Jobs"].items():
            if job[f"{kind}JobStatus"] not in _ENDED:
                yield f"{name} is {job[f'{kind}JobStatus']}"
    for job in ending.account["s3control"]["Jobs"]:
        if job["Status"] not in _COPIED:
            yield f"the copy {job['JobId']} is {job['Status']}"
    for task in ending.account["fsx"].get("DataRepositoryTasks", ()):
        if task["Lifecycle"] in _BUSY:
            yield f"{task['Type']} is {task['Lifecycle']}"


def _no_file_system(ending: Ending) -> Iterator[str]:
    """Yield the file systems left, but for one whose export did not end, which is kept for a time.

    It failed, or somebody stopped the execution meanwhile.
    """
    for name, system in ending.account["fsx"]["FileSystems"].items():
        kept = ending.error in ("ExportFailed", "Stopped") and _KEPT in system.get("Tags", ())
        # The service finishes a deletion, whether or not anybody may look at it.
        if not kept and system["Lifecycle"] != "DELETING":
            yield f"{name} is left ({system['Lifecycle']})"


def _served(cell: Cell, ending: Ending) -> Iterator[str]:
    endpoint = ending.account["sagemaker"]["Endpoints"].get(ENDPOINT)
    if endpoint is not None and endpoint["EndpointStatus"] not in ("InService", "Failed"):
        yield f"the endpoint is {endpoint['EndpointStatus']}"
    valid = {OLD, BEST} if cell.served else {None, BEST}
    if ending.answer not in valid:
        yield f"the endpoint answers {ending.answer}"
    if ending.state == "succeeded" and ending.answer != BEST:
        yield f"the run succeeded and the endpoint answers {ending.answer}"


def _paid(ending: Ending) -> Iterator[str]:
    jobs = ending.account["sagemaker"]
    trained = [job for job in jobs["TrainingJobs"].values() if "TrainingStartTime" in job]
    if len(trained) > 1:
        yield f"{len(trained)} training jobs ran"
    if len(jobs["ProcessingJobs"]) > _CHECKPOINTS:
        yield f"{len(jobs['ProcessingJobs'])} evaluations of {_CHECKPOINTS} checkpoints"
    made = {
        call.request["ClientRequestToken"]
        for call in ending.calls
        if call.operation == "CreateFileSystem"
    }
    if len(made) > 1:
        yield f"{len(made)} file systems"


def _paid_small(ending: Ending) -> Iterator[str]:
    """Yield what was started twice; a search starts its two training jobs itself."""
    account = ending.account["sagemaker"]
    searched = len(account["HyperParameterTuningJobs"])
    started = {kind: len(account[f"{kind}Jobs"]) for kind in ("Processing", "Transform")}
    started |= {"search": searched, "copy": len(ending.account["s3control"]["Jobs"])}
    yield from (f"{count} jobs: {kind}" for kind, count in started.items() if count > 1)
    if len(account["TrainingJobs"]) > _SEARCHED * searched:
        yield f"{len(account['TrainingJobs'])} training jobs of a search for {_SEARCHED}"


def _differences(ending: Ending, reference: Ending) -> Iterator[str]:
    if ending.state != reference.state:
        yield f"{ending.state} and not {reference.state}: {ending.error}: {ending.cause}"
    elif ending.error != reference.error:
        yield f"error {ending.error!r} and not {reference.error!r}"
    elif normal.anonymous(ending.cause) != normal.anonymous(reference.cause):
        yield f"cause {ending.cause!r} and not {reference.cause!r}"
