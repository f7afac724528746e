"""Events of S3 and of SageMaker's model registry, and those that PutEvents sends.

moto 5.2.5 takes events in the name of AWS's own services from everybody, gives all events of S3 one
id and one time, tells twice of what was uploaded in parts, leaves EventBridge out of the
notifications of a bucket that it shows, and does not know what to do where a rule's target is a
state machine or a topic.
``tests/local/events/test_events.py`` fails without this module.
"""

from __future__ import annotations

import copy
import datetime
import uuid
from typing import Any, Final

from orchestration.local.account.protocol import ACCOUNT_ID, JsonObject
from orchestration.local.engine.deliveries import delivered, dispatch, later, matches
from orchestration.local.engine.seams import replace
from orchestration.local.events.rules import EVENTS

_REASONS: Final = {
    "Put": "PutObject",
    "Post": "POST Object",
    "Copy": "CopyObject",
    "CompleteMultipartUpload": "CompleteMultipartUpload",
}
_MOST_ENTRIES: Final = 10
_TOLD: Final[tuple[str, ...]] = (
    "ModelPackageGroupName",
    "ModelPackageName",
    "ModelPackageVersion",
    "ModelPackageArn",
    "ModelPackageStatus",
    "ModelApprovalStatus",
)


def install() -> None:
    """Let S3 tell of new objects."""
    from moto.s3 import notifications
    from moto.s3.responses import S3Response

    replace(notifications, "_send_event_bridge_message", _tell_of_object)
    shown = S3Response.get_bucket_notification
    replace(S3Response, "get_bucket_notification", _with_event_bridge(shown))


def _with_event_bridge(method: Any) -> Any:
    from moto.core.responses import ActionResult

    def get_bucket_notification(self: Any) -> Any:
        own = self.backend.get_bucket_notification_configuration(self.bucket_name)
        if own is None or own.event_bridge is None:
            return method(self)
        lists = {
            "TopicConfigurations": ("TopicArn", own.topic),
            "QueueConfigurations": ("QueueArn", own.queue),
            "LambdaFunctionConfigurations": ("LambdaFunctionArn", own.cloud_function),
        }
        result: JsonObject = {
            name: [{"Id": each.id, arn: each.arn, "Events": each.events} for each in items]
            for name, (arn, items) in lists.items()
        }
        self.data["Action"] = "GetBucketNotificationConfiguration"
        return self.serialized(ActionResult({**result, "EventBridgeConfiguration": {}}))

    return get_bucket_notification


def install_rules() -> None:
    """Let events of PutEvents get to state machines and topics; loads EventBridge."""
    from moto.events.models import EventsBackend, Rule

    replace(EventsBackend, "put_events", _of_own_sources(EventsBackend.put_events))
    send = Rule.send_to_targets

    def send_to_targets(self: Any, event: Any, transform_input: bool = True) -> None:
        own = [target for target in self.targets if delivered(target)]
        if not own:
            send(self, event, transform_input)
            return
        whole = _plain(event)
        if matches(self, whole):
            later(own, whole)
        others = copy.copy(self)
        others.targets = [target for target in self.targets if not delivered(target)]
        send(others, event, transform_input)

    replace(Rule, "send_to_targets", send_to_targets)


def _of_own_sources(method: Any) -> Any:
    refused = EVENTS["sources of AWS"]
    failed = {"ErrorCode": refused.error, "ErrorMessage": refused.message}

    def put_events(self: Any, events: list[JsonObject]) -> list[JsonObject]:
        own = [each for each in events if not str(each.get("Source")).startswith("aws.")]
        # All of them count towards the ten of a request.
        answers = iter(method(self, own if len(events) <= _MOST_ENTRIES else events))
        return [next(answers) if each in own else dict(failed) for each in events]

    return put_events


def tell_of_package(region: str, package: JsonObject) -> None:
    """Tell EventBridge of a model package that was made or changed, as DescribeModelPackage has it.

    https://docs.aws.amazon.com/sagemaker/latest/dg/automating-sagemaker-with-eventbridge.html
    """
    detail = {name: package[name] for name in _TOLD if name in package}
    kind = "SageMaker Model Package State Change"
    dispatch(_event("aws.sagemaker", kind, region, [package["ModelPackageArn"]], detail))


def _tell_of_object(account_id: str, bucket: Any, event_name: str, key: Any) -> None:  # noqa: ARG001 (moto's own)
    kind, _, way = str(getattr(event_name, "value", event_name)).rpartition(":")
    if kind != "s3:ObjectCreated" or (way == "Put" and key.multipart is not None):
        return
    thing = {
        "key": key.name,
        "size": key.size,
        "etag": key.etag.strip('"'),
        "sequencer": uuid.uuid4().hex[:18].upper(),
    }
    detail = {
        "version": "0",
        "bucket": {"name": bucket.name},
        "object": thing,
        "request-id": uuid.uuid4().hex[:16].upper(),
        "requester": ACCOUNT_ID,
        "source-ip-address": "127.0.0.1",
        "reason": _REASONS.get(way, way),
    }
    dispatch(_event("aws.s3", "Object Created", bucket.region_name, [bucket.arn], detail))


def _event(
    source: str, kind: str, region: str, resources: list[str], detail: JsonObject
) -> JsonObject:
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": kind,
        "source": source,
        "account": ACCOUNT_ID,
        "time": datetime.datetime.now(tz=datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": region,
        "resources": resources,
        "detail": detail,
    }


def _plain(event: Any) -> JsonObject:
    """Return an event of moto's as AWS has it: the time is text, and one of them."""
    plain = {name: value for name, value in event.items() if name != "ingestion-time"}
    if isinstance(plain["time"], int | float):
        moment = datetime.datetime.fromtimestamp(plain["time"], tz=datetime.UTC)
        plain["time"] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    return plain
