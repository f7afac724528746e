"""What a client is given for a request whose API takes bytes."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.session import Session

from orchestration.execution.clients import one_attempt, send
from orchestration.execution.effects import Request


class _Sent(Exception):
    pass


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        ("a,b\n1,2", b"a,b\n1,2"),
        ({"instances": [[0.5]], "é": None}, '{"instances":[[0.5]],"é":null}'.encode()),
        ([1, True], b"[1,true]"),
        (0, b"0"),
    ],
)
def test_text_is_sent_as_it_is_and_anything_else_as_its_json(body: Any, sent: bytes) -> None:
    client = Session().create_client(
        "sagemaker-runtime",
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=one_attempt(),
    )
    bodies: list[bytes] = []

    def catch(request: Any, **_: Any) -> None:
        bodies.append(request.body if isinstance(request.body, bytes) else request.body.encode())
        raise _Sent

    client.meta.events.register("before-send.sagemaker-runtime.InvokeEndpoint", catch)
    with pytest.raises(_Sent):
        send(
            client,
            Request("sagemaker-runtime", "InvokeEndpoint", {"EndpointName": "e", "Body": body}),
        )
    assert bodies == [sent]
