"""Updates of components: what starts needs room before the old copies end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestration.local import EmbeddedAws
from tests.local.breaking.components import component, configuration, described
from tests.local.breaking.hosting import part, served
from tests.local.conftest import prepare, wait

MEMORY_MIB = 5000
"""Of a copy: an instance of 8 GiB has room for one."""
ROLLING = {"RollingUpdatePolicy": {"MaximumBatchSize": part(50), "WaitIntervalInSeconds": 60}}


@pytest.fixture(scope="module")
def account() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.001) as aws:
        prepare(aws)
        yield aws


def test_an_update_without_room_leaves_the_old_model_and_one_by_batches_grows_first(
    account: EmbeddedAws,
) -> None:
    client = account.client("sagemaker")
    scaling = {"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 3}
    name = configuration(account, ManagedInstanceScaling=scaling)
    client.create_endpoint(EndpointName=name, EndpointConfigName=name)

    def instances(number: int) -> dict[str, Any]:
        return wait(
            lambda: client.describe_endpoint(EndpointName=name),
            lambda each: (
                each["EndpointStatus"] == "InService"
                and each["ProductionVariants"][0]["CurrentInstanceCount"] == number
            ),
        )

    instances(1)
    shared = component(account, name, copies=2, memory=MEMORY_MIB)
    first = described(account, shared, "InService")["Specification"]["ModelName"]
    model = served(account)["ModelName"]
    needs = {"MinMemoryRequiredInMb": MEMORY_MIB}
    asked = {"ModelName": model, "ComputeResourceRequirements": needs}

    def updated(**how: Any) -> str:
        client.update_inference_component(InferenceComponentName=shared, Specification=asked, **how)
        settled = described(account, shared, "InService", "Failed")
        assert settled["InferenceComponentStatus"] == "InService"
        return str(settled["Specification"]["ModelName"])

    # All at once, two copies and two more need four instances.
    assert updated() == first
    assert updated(DeploymentConfig=ROLLING) == model
    instances(2)


@pytest.mark.thorough
def test_nothing_else_changes_a_component_while_its_copies_become_more() -> None:
    with EmbeddedAws(time_scale=0.05) as aws:
        prepare(aws)
        name, client = component(aws), aws.client("sagemaker")
        described(aws, name, "InService")
        client.update_inference_component_runtime_config(
            InferenceComponentName=name, DesiredRuntimeConfig={"CopyCount": 2}
        )
        assert described(aws, name, "InService", "Updating")["RuntimeConfig"] == {
            "DesiredCopyCount": 2,
            "CurrentCopyCount": 1,
        }
        with pytest.raises(ClientError, match="Cannot update in-progress inference component"):
            client.update_inference_component(
                InferenceComponentName=name, RuntimeConfig={"CopyCount": 3}
            )
        assert described(aws, name, "InService")["RuntimeConfig"]["CurrentCopyCount"] == 2
