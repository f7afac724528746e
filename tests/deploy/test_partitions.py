"""In China and GovCloud, policies, trusts and definitions name what exists there, and no more."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
import yaml

from orchestration import Pipeline
from orchestration.deploy import Account, desired
from orchestration.deploy.identities import Identity, identities
from orchestration.errors import DeployError
from tests.conformance.pipelines import exporting, filled, listed, served
from tests.deploy.pipelines import ACCOUNT, PARAMETERS, resting
from tests.deploy.test_identities import private

MOVED = {
    "cn-north-1": ("aws-cn", "amazonaws.com.cn", (served, exporting, listed, filled, private)),
    "us-gov-west-1": ("aws-us-gov", "amazonaws.com", (filled, private)),
}
SERVICES = frozenset(
    f"{name}.amazonaws.com"
    for name in (
        "batchoperations.s3",
        "datasync",
        "events",
        "fsx",
        "sagemaker",
        "scheduler",
        "states",
    )
)
"""Services have these names in each partition."""


def moved(make: Callable[[], Pipeline], region: str, partition: str, domain: str) -> Pipeline:
    """Return a pipeline that says of another region what it says of us-east-1."""
    text = make().to_yaml().replace("us-east-1", region)
    text = text.replace("amazonaws.com", domain).replace("arn:aws:", f"arn:{partition}:")
    return Pipeline.parse({**yaml.safe_load(text), "region": region})


def conditions(every: tuple[Identity, ...], key: str) -> set[str]:
    """Return the values of a condition key in any policy."""
    found: set[str] = set()
    for statement in (each for one in every for each in one.policy["Statement"]):
        for pairs in statement.get("Condition", {}).values():
            values = pairs.get(key, ())
            found.update([values] if isinstance(values, str) else values)
    return found


@pytest.mark.parametrize("region", MOVED)
def test_what_is_named_is_of_the_partition(region: str) -> None:
    partition, domain, makers = MOVED[region]
    account = Account.at(ACCOUNT.id, region)
    values = {**PARAMETERS, "role": f"arn:{partition}:iam::{ACCOUNT.id}:role/SageMakerExecution"}
    through: set[str] = set()
    for make in makers:
        pipeline = moved(make, region, partition, domain)
        every = identities(pipeline, account, parameters=values)
        definition = desired(pipeline, account, parameters=values).machine.definition
        documents = [definition, *(dict(part) for one in every for part in (one.policy, one.trust))]
        text = json.dumps(documents)
        assert set(re.findall(r"\barn:([\w-]+):", text)) == {partition}
        assert "us-east-1" not in text
        principals = {
            statement["Principal"]["Service"]
            for one in every
            for statement in one.trust.get("Statement", ())
        }
        assert principals <= SERVICES
        assert conditions(every, "iam:PassedToService") <= SERVICES
        assert conditions(every, "iam:AWSServiceName") <= SERVICES
        through |= conditions(every, "kms:ViaService")
    name = f"s3.{region}.amazonaws.com"
    assert through == ({name, f"{name}.cn"} if partition == "aws-cn" else {name})


@pytest.mark.parametrize("region", MOVED)
def test_a_pipeline_without_a_region_is_refused_outside_partition_aws(region: str) -> None:
    partition, account = MOVED[region][0], Account.at(ACCOUNT.id, region)
    with pytest.raises(DeployError) as caught:
        desired(resting(), account, parameters=PARAMETERS)
    assert str(caught.value) == (
        "pipeline resting names no region, so its ARNs are those of partition aws, and the session "
        f"is for {region} in partition {partition}; give the pipeline `region: {region}`"
    )
    machine = desired(resting(region=region), account, parameters=PARAMETERS).machine
    assert machine.arn.startswith(f"arn:{partition}:states:{region}:")
