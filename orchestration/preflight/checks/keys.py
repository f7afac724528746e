"""KMS keys: they exist, are enabled, and can encrypt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestration.deploy.permissions.requests import keys as in_request
from orchestration.preflight.examination import Examination
from orchestration.preflight.findings import Finding, Rule
from orchestration.preflight.places import beside, place
from orchestration.preflight.reader import looked
from orchestration.preflight.requests import Request, known

_RULE: Final = Rule(
    check="keys",
    why="volumes and objects are encrypted with enabled symmetric keys of the region",
    sources=(
        "https://docs.aws.amazon.com/kms/latest/developerguide/key-state.html",
        "https://docs.aws.amazon.com/sagemaker/latest/dg/key-management.html",
    ),
)
_ABSENT: Final = ("NotFoundException", "InvalidArnException")


def keys(examination: Examination) -> Iterator[Finding]:
    """Yield the keys that requests name and that nothing can be encrypted with."""
    seen: set[str] = set()
    for request in examination.requests:
        trees = in_request(request.operation.request)
        for key, tree in beside(in_request(request.values), trees):
            if not isinstance(key, str) or not known(key) or key in seen:
                continue
            seen.add(key)
            where = place(examination.pipeline, request.step, tree)
            look = key_findings(examination, key, request, where)
            yield from looked("keys", where, f"key {key}", look)


def key_findings(
    examination: Examination, key: str, request: Request, where: str
) -> Iterator[Finding]:
    """Yield why nothing can be encrypted with a key."""
    region = key.split(":")[3] if key.startswith("arn:") and key.count(":") > 4 else None
    if region not in (None, examination.account.region):
        what = f"key {key} is in {region}, and runs are in {examination.account.region}"
        yield _RULE.broken(request.calls, where, what, "name a key of the region of the runs")
        return
    answer = examination.reader.ask("kms", "DescribeKey", absent=_ABSENT, KeyId=key)
    if answer is None:
        what = f"key {key} does not exist in {examination.account.region}"
        yield _RULE.broken(request.calls, where, what, "create it, or mend its name")
        return
    found = answer["KeyMetadata"]
    if found["KeyState"] != "Enabled":
        mend = "cancel its deletion" if "Deletion" in found["KeyState"] else "enable it"
        yield _RULE.broken(request.calls, where, f"key {key} is {found['KeyState']}", mend)
    spec = found.get("KeySpec", found.get("CustomerMasterKeySpec", "SYMMETRIC_DEFAULT"))
    if spec != "SYMMETRIC_DEFAULT":
        what = f"key {key} is of the kind {spec}"
        yield _RULE.broken(request.calls, where, what, "take a symmetric key for encryption")
