"""Checks of a request for a batch transform job."""

from __future__ import annotations

from collections.abc import Iterator

from orchestration.checks import jsonpath
from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject
from orchestration.local.sagemaker.checks.surroundings import check_objects, not_simulated
from orchestration.local.sagemaker.rules import refusal

_LARGEST_MB = 100


def check_transform_request(account: Account, request: JsonObject, role: str) -> None:
    """Refuse what SageMaker refuses, and what the simulation cannot do."""
    split = request["TransformInput"].get("SplitType", "None")
    if request.get("BatchStrategy") == "MultiRecord" and split == "None":
        raise refusal("batches are of records")
    payload = request.get("MaxPayloadInMB", 6)
    together = payload * request.get("MaxConcurrentTransforms", 0)
    if payload > _LARGEST_MB or together > _LARGEST_MB:
        raise refusal("100 MB of payload", size=max(payload, together))
    for field in ("InputFilter", "OutputFilter"):
        path = request.get("DataProcessing", {}).get(field, "$")
        try:
            jsonpath.parse(path)
        except ValueError:
            raise refusal("filters are JSONPath", field=field, path=path) from None
    not_simulated(_not_simulated(request))
    source = request["TransformInput"]["DataSource"]["S3DataSource"]
    check_objects(account, source["S3Uri"], role)


def _not_simulated(request: JsonObject) -> Iterator[str]:
    source = request["TransformInput"]["DataSource"].get("S3DataSource", {})
    if source.get("S3DataType") != "S3Prefix":
        yield "transforms of other than an S3Prefix"
    split = request["TransformInput"].get("SplitType", "None")
    if split not in ("None", "Line"):
        yield f"SplitType {split}"
    if request.get("DataCaptureConfig"):
        yield "DataCaptureConfig"
