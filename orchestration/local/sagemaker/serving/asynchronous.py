"""Asynchronous invocations: requests from S3, whose answers are written to S3.

https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-check-predictions.html
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable
from typing import Any, Final

from orchestration.local.account import storage
from orchestration.local.account.account import Account
from orchestration.local.account.protocol import ACCOUNT_ID, Answer, JsonObject, ServiceError
from orchestration.local.account.storage import Location
from orchestration.local.sagemaker.rules import refusal

_OK: Final = 300


def start(
    account: Account, config: JsonObject, request: JsonObject, answered: Callable[[bytes], Answer]
) -> Answer:
    """Put a request behind those that wait, and return where its answer will be."""
    given = config.get("AsyncInferenceConfig")
    if given is None:
        raise refusal("requests without a queue", name=request["EndpointName"])
    body = _body(request)
    identifier = str(request.get("InferenceId") or uuid.uuid4())
    output = given["OutputConfig"]
    place = f"{output['S3OutputPath'].rstrip('/')}/{identifier}.out"
    failed = output.get("S3FailurePath", output["S3OutputPath"]).rstrip("/")
    failed = f"{failed}/{identifier}-error.out"

    def work() -> None:
        answer = answered(body)
        is_well = answer.status < _OK
        storage.write(Location.parse(place if is_well else failed), answer.body)
        topics = output.get("NotificationConfig", {})
        topic = topics.get("SuccessTopic" if is_well else "ErrorTopic")
        if topic is not None:
            message = {
                "inferenceId": identifier,
                "invocationStatus": "Completed" if is_well else "Failed",
                "responseParameters": {"outputLocation": place if is_well else failed},
            }
            _publish(account.region, topic, message)

    threading.Thread(target=work, daemon=True).start()
    headers = [("x-amzn-SageMaker-OutputLocation", place)]
    headers.append(("x-amzn-SageMaker-FailureLocation", failed))
    text = json.dumps({"InferenceId": identifier}).encode()
    return Answer(202, text, (("Content-Type", "application/json"), *headers))


def _body(request: JsonObject) -> bytes:
    uri = request.get("InputLocation")
    if uri is None:
        return bytes(request.get("Body") or b"")
    try:
        return storage.read(Location.parse(uri))
    except ServiceError:
        raise refusal("requests in S3", uri=uri) from None


def _publish(region: str, topic: str, message: dict[str, Any]) -> None:
    # Imported here because few accounts have topics.
    from moto.sns.exceptions import SNSNotFoundError
    from moto.sns.models import sns_backends

    try:
        sns_backends[ACCOUNT_ID][region].publish(json.dumps(message), arn=topic)
    except SNSNotFoundError:
        return  # SageMaker counts it in NotificationFailures.
