"""Reading an account: calls that change nothing, each asked once."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from orchestration.deploy.account import Clients
from orchestration.deploy.permissions import derived
from orchestration.preflight.findings import Finding

_READS: Final = re.compile(r"(BatchGet|Describe|Get|Head|List|Simulate)[A-Z]\w*")
_DENIALS: Final = frozenset(
    {"403", "AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "Forbidden"}
)
_OK: Final = 200
_ACTIONS: Final = {
    ("s3", "GetBucketEncryption"): "s3:GetEncryptionConfiguration",
    ("s3", "HeadBucket"): "s3:ListBucket",
}
"""Operations that IAM knows by another name."""


class Unread(Exception):
    """Something that could not be read."""

    def __init__(self, action: str, error: Exception, *, denied: bool) -> None:
        super().__init__(str(error))
        self.action = action
        self.denied = denied

    def finding(self, check: str, where: str, what: str) -> Finding:
        """Return the finding that says what could not be looked at."""
        mend = (
            f"allow {self.action} to whoever runs the doctor; `orchestrate iam --for doctor` "
            "prints all that it needs"
            if self.denied
            else "see the error, and run the doctor again"
        )
        return Finding(
            check=check,
            severity="not checked",
            where=where,
            what=f"could not check {what}: "
            + (f"it needs permission {self.action}" if self.denied else f"{self.action} failed"),
            why=str(self),
            when="nobody knows before a run",
            mend=mend,
        )


class Reader:
    """The read-only view of an account."""

    def __init__(self, session: Clients) -> None:
        self._session = session
        self._clients: dict[str, Any] = {}
        self._answers: dict[str, Any] = {}

    def ask(
        self, service: str, operation: str, /, absent: Collection[str] = (), **request: Any
    ) -> Any:
        """Return the response, or ``None`` for an error that says that there is no such thing.

        ``absent`` are the codes of such errors. Raises :class:`Unread` for any other error.
        """
        key = json.dumps([service, operation, request], sort_keys=True, default=str)
        if key not in self._answers:
            self._answers[key] = self._asked(service, operation, absent, request)
        answer = self._answers[key]
        if isinstance(answer, Unread):
            raise answer
        return answer

    def every(
        self,
        service: str,
        operation: str,
        member: str,
        /,
        token: tuple[str, str] = ("NextToken", "NextToken"),
        absent: Collection[str] = (),
        **request: Any,
    ) -> Iterator[Mapping[str, Any]]:
        """Yield a list's members from all pages; ``token``: the response's and the request's."""
        page = self.ask(service, operation, absent=absent, **request)
        while page is not None:
            yield from page.get(member, ())
            following = page.get(token[0])
            if not following:
                return
            page = self.ask(service, operation, absent=absent, **request, **{token[1]: following})

    def download(self, action: str, url: str) -> bytes:
        """Return the content of an address that an action has given."""
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError
        from botocore.httpsession import URLLib3Session
        from botocore.utils import get_environ_proxies

        try:
            request = AWSRequest(method="GET", url=url).prepare()
            response = URLLib3Session(proxies=get_environ_proxies(url)).send(request)
        except BotoCoreError as error:
            raise Unread(action, error, denied=False) from error
        if response.status_code != _OK:
            told = RuntimeError(f"its address answers {response.status_code}")
            raise Unread(action, told, denied=False)
        return bytes(response.content)

    def _asked(
        self, service: str, operation: str, absent: Collection[str], request: Mapping[str, Any]
    ) -> Any:
        if _READS.fullmatch(operation) is None:
            raise ValueError(f"{service}:{operation} may change something")
        from botocore import xform_name
        from botocore.exceptions import BotoCoreError, ClientError

        action = action_of(service, operation)
        try:
            if service not in self._clients:
                self._clients[service] = self._session.client(service)
            return getattr(self._clients[service], xform_name(operation))(**request)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code in absent:
                return None
            return Unread(action, error, denied=code in _DENIALS)
        except BotoCoreError as error:
            return Unread(action, error, denied=False)


def action_of(service: str, operation: str) -> str:
    """Return IAM's action for an operation, by botocore's names."""
    if (service, operation) in _ACTIONS:
        return _ACTIONS[service, operation]
    row = derived.row(service, operation)
    return f"{service}:{operation}" if row is None else f"{row.prefix}:{row.action}"


def looked(check: str, where: str, what: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """Yield the findings of a look at one thing; if it can't be read, the finding that says so."""
    try:
        yield from findings
    except Unread as error:
        yield error.finding(check, where, what)
