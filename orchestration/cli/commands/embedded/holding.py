"""``orchestrate run --keep`` on a terminal: the account stays open after the run."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from orchestration.cli.output import note

if TYPE_CHECKING:
    from orchestration.local.server.embedded import EmbeddedAws

IDLE_S: Final = 1800.0
"""The time without a request after which the account ends by itself."""
_SHOWN: Final = (
    "AWS_ENDPOINT_URL",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_DEFAULT_REGION",
)


def has_terminal() -> bool:
    """Return whether somebody is there to use the account, and to end it."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def hold(aws: EmbeddedAws, *, idle_s: float = IDLE_S, every_s: float = 5.0) -> None:
    """Say how to reach an account; wait for Ctrl-C, or until nothing has reached it for long."""
    for line in _ways(aws):
        note(line)
    note(f"the account ends with Ctrl-C, or after {idle_s / 60:g} minutes without a request")
    with contextlib.suppress(KeyboardInterrupt):
        seen, since = -1, time.monotonic()
        while time.monotonic() - since < idle_s:
            count = len(aws.calls(include_jobs=True))
            if count != seen:
                seen, since = count, time.monotonic()
            time.sleep(min(every_s, idle_s))
    note("the account has ended")


def _ways(aws: EmbeddedAws) -> Iterator[str]:
    """Yield the lines to put into another terminal."""
    environment = aws.environment()
    yield "the account is open; in another terminal (boto3 and the AWS CLI read these variables):"
    yield "  export " + " ".join(f"{name}={environment[name]}" for name in _SHOWN)
    for endpoint in aws.client("sagemaker").list_endpoints()["Endpoints"]:
        name = endpoint["EndpointName"]
        yield (
            f"  aws sagemaker-runtime invoke-endpoint --endpoint-name {name} "
            "--content-type application/json --body fileb://request.json answer.json"
        )
        yield (
            "  python -c \"import boto3; print(boto3.client('sagemaker-runtime').invoke_endpoint("
            f"EndpointName='{name}', ContentType='application/json', "
            "Body=open('request.json', 'rb'))['Body'].read())\""
        )
    yield "  orchestrate logs STAGE --kept"
