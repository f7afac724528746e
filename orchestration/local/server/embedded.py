"""The embedded AWS as its user sees it: a process that lives as long as a `with` block."""

from __future__ import annotations

import functools
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from orchestration.errors import LocalError
from orchestration.local.account.records import Fault, RecordedCall
from orchestration.local.account.stand_ins import StandIn
from orchestration.local.policies.deciding import Access
from orchestration.local.processes.environment import (
    ACCESS_KEY,
    SECRET_KEY,
    endpoint_of,
    environment,
    refuse_real_aws,
)
from orchestration.local.processes.scratch import Scratch
from orchestration.local.server import keeper
from orchestration.local.server.options import Options
from orchestration.local.server.sessions import RoleSession, boto_session

if TYPE_CHECKING:
    from typing import Self

# Far more than any answer takes: only a server that hangs takes as long.
_ANSWERS_WITHIN_S = 600.0
_SESSION_LOCK = threading.Lock()

DEFAULT_REGION = "us-east-1"
"""The region of an account that is given none."""


class EmbeddedAws:
    """A simulated AWS account on this machine: no account, no network, no cost.

    `time_scale` is the number of real seconds that a second of a pause takes (waits, retries,
    provisioning; not the limits on work). `devices_per_host` is the number of accelerators that an
    accelerated instance seems to have; its processes share this machine's CPUs. With `enforce_iam`,
    sessions of roles may do what the roles' policies allow, and executions act as their roles.
    A training or processing job that does what one has done whose results lie in the folder
    `job_cache` does not run again. Several accounts can exist at once.
    """

    def __init__(
        self,
        *,
        region: str = DEFAULT_REGION,
        time_scale: float = 0.02,
        devices_per_host: int = 1,
        enforce_iam: bool = False,
        directory: Path | None = None,
        job_cache: Path | None = None,
    ) -> None:
        self.region = region
        self.time_scale = time_scale
        """Real seconds of a second of a pause."""
        self._devices_per_host = devices_per_host
        self._enforce_iam = enforce_iam
        self._parent_directory = directory
        self._job_cache = job_cache
        self._server: keeper.Server | None = None
        self._scratch: Scratch | None = None
        self._client = functools.lru_cache(maxsize=None)(self._new_client)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start the server; `with` does it. A second start does nothing."""
        if self._server:
            return
        self._scratch = scratch = Scratch("embedded-aws-", self._parent_directory)
        options = Options(
            directory=str(scratch.path.resolve()),
            region=self.region,
            time_scale=self.time_scale,
            devices_per_host=self._devices_per_host,
            enforce_iam=self._enforce_iam,
            job_cache=None if self._job_cache is None else str(self._job_cache.resolve()),
        )
        try:
            self._server = keeper.of_this_process().start(options, scratch.temporary)
        except BaseException:
            scratch.close()
            raise

    def close(self) -> None:
        """End the server and everything it started, and remove its files."""
        if not self._server:
            return
        server, self._server = self._server, None
        server.end()
        if self._scratch:
            self._scratch.close()

    @property
    def endpoint_url(self) -> str:
        """The loopback address of the AWS APIs."""
        if not self._server:
            raise LocalError("this embedded AWS is not running; use it in a `with` block")
        return f"http://127.0.0.1:{self._server.port}"

    def environment(self) -> dict[str, str]:
        """Return a complete environment whose AWS clients reach this account only."""
        made = environment(self.endpoint_url, self.region)
        refuse_real_aws(made)
        return made

    def client(self, service: str, *, config: Any = None, account: str | None = None) -> Any:
        """Return a boto3 client for this account; it ignores the user's AWS configuration.

        Calls through it are not among `calls()`, unless `config` has a user agent of its own. With
        `account`, another account calls: S3 keeps its buckets and SageMaker its model registry, and
        both let this account use what their policies allow.
        """
        if account is not None:
            made = self._new_client(service, config)
            made.meta.events.register("before-sign", functools.partial(_call_as, account))
            return made
        return self._client(service) if config is None else self._new_client(service, config)

    def acting_as(self, role_arn: str) -> RoleSession:
        """Return a session of a role; with `enforce_iam`, the role's policies restrict it.

        Whom the role trusts is not asked: `client("sts").assume_role` does.
        """
        access_key, secret_key, token = self._get("session", {"role": role_arn})
        return RoleSession(self._new_client, (access_key, secret_key, token))

    def calls(
        self, *, service: str | None = None, include_jobs: bool = False
    ) -> list[RecordedCall]:
        """Return the AWS calls so far, in the order of their arrival.

        Excludes those of the jobs' own code and of `client()`, unless `include_jobs`.
        """
        calls = [RecordedCall.from_json(call) for call in self._get("calls")]
        return [
            call
            for call in calls
            if service in (None, call.service)
            and (include_jobs or call.origin not in ("job", "client"))
        ]

    def accesses(self) -> list[Access]:
        """Return what roles did or asked for under `enforce_iam`, and what their policies say.

        What services do as a role is among it: what jobs read and write, the images they pull,
        their logs. The account's own calls are not.
        """
        return [Access.from_json(access) for access in self._get("accesses")]

    def state(self) -> dict[str, Any]:
        """Return the content of the account: jobs, endpoints, file systems, objects, ..."""
        return dict(self._get("state"))

    def progress(self) -> list[dict[str, Any]]:
        """Return the jobs that have not ended: `name`, `tags`, and how far each of them is.

        That is its `phase` (the secondary status of a training job), the last `metrics` and the
        last `line` of its log, and its newest `checkpoint`.
        """
        return list(self._get("progress"))

    def logs(self, job_name: str) -> str:
        """Return the log of a job or an endpoint so far."""
        return str(self._get(f"logs/{quote(job_name)}")["logs"])

    def events(self, execution_arn: str, *, after: int = 0) -> list[dict[str, Any]]:
        """Return the events of an execution after its first `after`, waiting for new ones.

        Each event has a `type` and a `timestamp`, as in GetExecutionHistory, and the name of its
        `state`, if it has one. The list is empty if nothing has happened for some seconds.
        """
        return list(self._get("events", {"execution": execution_arn, "after": after}))

    def pass_time(self, *, hours: float) -> list[str]:
        """Let the schedules of EventBridge see this much time pass, at once.

        Every execution that they start has begun when this returns; the result names schedule and
        time of each, in order. Nothing else gets older: running jobs, waits, and limits.
        """
        answer = self._get("time", {"seconds": hours * 3600})
        if "refused" in answer:
            raise LocalError(answer["refused"])
        return list(answer["started"])

    def inject(self, fault: Fault) -> None:
        """Make the next matching calls or the next matching job fail."""
        self._get("faults", fault.to_json())

    def clear_faults(self) -> None:
        """Forget the faults that nothing has met yet."""
        self._get("faults", [])

    def provide(
        self,
        *,
        roles: Iterable[str] = (),
        subnets: Iterable[str] = (),
        security_groups: Iterable[str] = (),
        stand_ins: Iterable[StandIn] = (),
        quotas: Mapping[str, float] | None = None,
    ) -> None:
        """Create roles (by ARN), subnets and security groups (by id) that do not exist yet.

        SageMaker may assume the roles; the subnets are in the region's first zone. The stand-ins
        run in the place of images. A run does this for what its pipeline names. ``quotas`` sets
        those of SageMaker by name: ``ml.p5.48xlarge for training job usage``.
        """
        resources: dict[str, Iterable[Any]] = {
            "roles": roles,
            "subnets": subnets,
            "security_groups": security_groups,
            "stand_ins": map(asdict, stand_ins),
        }
        listed: dict[str, Any] = {name: list(each) for name, each in resources.items()}
        self._get("resources", {**listed, "quotas": dict(quotas or {})})

    def _new_client(
        self,
        service: str,
        config: Any = None,
        *,
        credentials: tuple[str, str, str | None] = (ACCESS_KEY, SECRET_KEY, None),
    ) -> Any:
        from botocore.config import Config

        own = Config(
            user_agent_extra="orchestration-local-client",
            ignore_configured_endpoint_urls=True,
            proxies={},
        )
        # A session makes one client at a time.
        with _SESSION_LOCK:
            return boto_session().client(
                service,
                endpoint_url=endpoint_of(service, self.endpoint_url),
                region_name=self.region,
                aws_access_key_id=credentials[0],
                aws_secret_access_key=credentials[1],
                aws_session_token=credentials[2],
                config=own if config is None else own.merge(config),
            )

    def _get(self, what: str, data: Any = None) -> Any:
        body = None if data is None else json.dumps(data).encode()
        url = f"{self.endpoint_url}/_embedded/{what}"
        # The URL is built here and is on the loopback.
        request = urllib.request.Request(url, data=body)  # noqa: S310
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=_ANSWERS_WITHIN_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise LocalError(error.read().decode()) from None


def _call_as(account: str, request: Any, **_: object) -> None:
    request.headers["x-moto-account-id"] = account
