"""The machines of a training job: one type, groups, preferences, plans, warm pools."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stages.training import call, evaluated, facts, job, refused, sent, warned

P4D = "ml.p4d.24xlarge"


def on(**cluster: Any) -> dict[str, Any]:
    return job(cluster=cluster)


def test_one_instance_is_what_no_count_means() -> None:
    assert sent(on(instance_type=P4D))["ResourceConfig"] == {
        "InstanceType": P4D,
        "InstanceCount": 1,
        "VolumeSizeInGB": 30,
    }


def test_a_heterogeneous_cluster_has_groups_and_no_type_of_its_own() -> None:
    groups = [
        {"name": "gpu", "instance_type": P4D, "instance_count": 2},
        {"name": "data", "instance_type": "ml.c5.18xlarge"},
    ]
    channel = {"uri": "s3://b/x", "instance_groups": ["data"]}
    request = sent(job(cluster={"groups": groups}, channels={"training": channel}))
    assert request["ResourceConfig"] == {
        "VolumeSizeInGB": 30,
        "InstanceGroups": [
            {"InstanceGroupName": "gpu", "InstanceType": P4D, "InstanceCount": 2},
            {"InstanceGroupName": "data", "InstanceType": "ml.c5.18xlarge", "InstanceCount": 1},
        ],
    }
    [entry] = request["InputDataConfig"]
    assert entry["DataSource"]["S3DataSource"]["InstanceGroupNames"] == ["data"]


def test_a_channel_for_all_groups_names_them_where_another_channel_names_some() -> None:
    groups = [
        {"name": "gpu", "instance_type": P4D},
        {"name": "data", "instance_type": "ml.c5.18xlarge"},
    ]
    channels = {
        "a": {"uri": "s3://b/a", "instance_groups": ["data"]},
        "b": {"uri": "s3://b/b"},
        "c": {"kind": "fsx_lustre", "file_system_id": "fs-0123456789abcdef0", "path": "/fsx/c"},
    }
    vpc = {"subnets": ["subnet-0a"], "security_groups": ["sg-0a"]}
    made = job(cluster={"groups": groups}, channels=channels, vpc=vpc)
    sources = [entry["DataSource"] for entry in sent(made)["InputDataConfig"]]
    assert [s.get("S3DataSource", {}).get("InstanceGroupNames") for s in sources] == [
        ["data"],
        ["gpu", "data"],
        None,
    ]
    # Where no channel names any, all of them go everywhere without names.
    del channels["a"]
    plain = job(cluster={"groups": groups}, channels=channels, vpc=vpc)
    assert "InstanceGroupNames" not in str(sent(plain))


def test_a_channel_goes_to_groups_that_there_are() -> None:
    groups = [{"name": "gpu", "instance_type": P4D}]
    channel = {"uri": "s3://b/x", "instance_groups": ["cpu"]}
    found = refused(job(cluster={"groups": groups}, channels={"a": channel}))
    assert found["channels.a.instance_groups"] == "there is no group 'cpu'; there is gpu"
    plain = refused(job(channels={"a": channel}))
    assert plain["channels.a.instance_groups"] == "the cluster has no groups; leave it out"


@pytest.mark.parametrize(
    ("preferences", "count", "expected"),
    [
        (
            [{"instance_type": P4D}, {"instance_type": "ml.p4de.24xlarge"}],
            {"instance_count": 2},
            {
                "InstancePreferences": [
                    {"InstanceType": P4D},
                    {"InstanceType": "ml.p4de.24xlarge"},
                ],
                "InstanceCount": 2,
            },
        ),
        (
            [{"instance_type": P4D, "instance_count": 2}, {"instance_type": "ml.p5.48xlarge"}],
            {},
            {
                "InstancePreferences": [
                    {"InstanceType": P4D, "InstanceCount": 2},
                    {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1},
                ]
            },
        ),
    ],
)
def test_preferences_have_each_a_count_or_one_for_all(
    preferences: list[Any], count: dict[str, int], expected: dict[str, Any]
) -> None:
    request = sent(on(preferences=preferences, max_pending_s=7200, **count))
    assert request["ResourceConfig"] == {"VolumeSizeInGB": 30, **expected}
    assert request["StoppingCondition"]["MaxPendingTimeInSeconds"] == 7200


def test_a_job_may_pend_and_run_for_as_long_as_it_is_allowed_to() -> None:
    step = call(on(instance_type=P4D, max_pending_s=86_400))
    assert step.until is not None
    assert step.until.timeout_s == 86_400 + 86_400 + 3600


def test_a_training_plan_and_a_warm_pool_go_out() -> None:
    plan = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/large"
    key = "arn:aws:kms:us-west-2:111122223333:key/1"
    resources = sent(
        on(instance_type="ml.m5.xlarge", training_plan=plan, keep_alive_s=600, volume_kms_key=key)
    )["ResourceConfig"]
    assert resources["TrainingPlanArn"] == plan
    assert resources["KeepAlivePeriodInSeconds"] == 600
    assert resources["VolumeKmsKeyId"] == key


@pytest.mark.parametrize(
    ("cluster", "path", "message"),
    [
        ({}, "cluster", "needs instance_type; or groups, or preferences"),
        (
            {"instance_type": P4D, "groups": [{"name": "a", "instance_type": P4D}]},
            "cluster",
            "takes one of instance_type and groups, not both",
        ),
        (
            {"fallbacks": [{"instance_type": P4D}], "preferences": [{"instance_type": P4D}]},
            "cluster.fallbacks",
            "follow an instance_type",
        ),
        (
            {"instance_count": 2, "groups": [{"name": "a", "instance_type": P4D}]},
            "cluster.instance_count",
            "each of the groups has its own",
        ),
        (
            {"instance_count": 2, "preferences": [{"instance_type": P4D, "instance_count": 1}]},
            "cluster.instance_count",
            "each of the preferences has its own",
        ),
        (
            {"preferences": [{"instance_type": P4D}, {"instance_type": P4D}]},
            "cluster.preferences",
            "names an instance type twice",
        ),
        (
            {"groups": [{"name": "a", "instance_type": P4D}, {"name": "a", "instance_type": P4D}]},
            "cluster.groups",
            "two groups are called 'a'",
        ),
        ({"instance_type": "p4d.24xlarge"}, "cluster.instance_type", "write ml.p4d.24xlarge"),
        ({"instance_type": "ml.p4x.24xlarge"}, "cluster.instance_type", "did you mean 'ml.p4d"),
        (
            {"instance_type": P4D, "fallbacks": [{"instance_type": "ml.p44.24xlarge"}]},
            "cluster.fallbacks[0].instance_type",
            "is not an instance type for training",
        ),
        (
            {"instance_type": P4D, "volume_kms_key": "key"},
            "cluster.volume_kms_key",
            "ml.p4d.24xlarge has local storage",
        ),
        ({"instance_type": P4D, "keep_alive_s": 3601}, "cluster.keep_alive_s", "the most is 3600"),
        (
            {"groups": [{"name": "a", "instance_type": P4D}], "keep_alive_s": 60},
            "cluster.keep_alive_s",
            "a heterogeneous cluster can't be kept",
        ),
        ({"instance_type": P4D, "max_pending_s": 60}, "cluster.max_pending_s", "least is 1800"),
    ],
)
def test_what_no_cluster_can_be_is_said_where_it_stands(
    cluster: dict[str, Any], path: str, message: str
) -> None:
    found = refused(on(**cluster))
    assert message in found[path]


@pytest.mark.parametrize(
    "cluster",
    [
        {"instance_type": P4D, "keep_alive_s": 60},
        {
            "instance_type": P4D,
            "training_plan": "arn:aws:sagemaker:us-west-2:111122223333:training-plan/large",
        },
        {"preferences": [{"instance_type": P4D}]},
    ],
)
def test_spot_capacity_is_not_for_everything(cluster: dict[str, Any]) -> None:
    found = refused(job(cluster=cluster, spot={"max_wait_s": 90_000}, checkpoints={}))
    [message] = found.values()
    assert "can't be had with spot capacity" in message


def test_a_limit_is_found_in_further_fields_of_the_request_too() -> None:
    extra = {"ResourceConfig": {"KeepAlivePeriodInSeconds": 3700}}
    found = refused(job(extra_request=extra))
    assert "extra_request.ResourceConfig.KeepAlivePeriodInSeconds" in found
    groups = [{"InstanceGroupName": "a", "InstanceType": P4D, "InstanceCount": 1}]
    found = refused(job(extra_request={"ResourceConfig": {"InstanceGroups": groups}}))
    excluded = found["extra_request.ResourceConfig.InstanceGroups"]
    assert excluded == "excludes InstanceType; give one of them"
    wait = {"StoppingCondition": {"MaxWaitTimeInSeconds": 90_000}}
    found = refused(job(extra_request=wait))
    path = "extra_request.StoppingCondition.MaxWaitTimeInSeconds"
    assert found[path].startswith("has a meaning for spot capacity only")


def test_pending_for_a_machine_without_accelerators_has_no_effect() -> None:
    assert "cluster.max_pending_s" in warned(on(instance_type="ml.m5.xlarge", max_pending_s=1800))
    assert warned(on(instance_type=P4D, max_pending_s=1800)) == {}


def test_a_parameter_s_default_is_checked_like_what_is_written() -> None:
    cluster = {"instance_type": {"parameter": "machine"}}
    given = {"machine": {"default": "ml.p4x.24xlarge"}}
    found = refused(job(cluster=cluster), parameters=given)
    assert found["cluster.instance_type"].endswith("(so by the parameters' defaults)")


def test_fallbacks_are_jobs_of_their_own_with_images_of_their_own() -> None:
    cluster = {
        "instance_type": P4D,
        "instance_count": 2,
        "fallbacks": [{"instance_type": "ml.m5.xlarge", "instance_count": 8}],
    }
    framework = {"name": "pytorch", "version": "2.8.0"}
    step = call(job(image=None, framework=framework, cluster=cluster))
    assert step.fallback is not None
    [other] = step.fallback.alternatives
    assert (step.fallback.label, other.label) == (f"2 x {P4D}", "8 x ml.m5.xlarge")
    first, second = evaluated(step.operation.request), evaluated(other.operation.request)
    assert first["TrainingJobName"] == "p-train-0123456789ab"
    assert second["TrainingJobName"] == "p-train-0123456789ab-b"
    assert evaluated(other.poll.request) == {"TrainingJobName": second["TrainingJobName"]}
    images = [sent["AlgorithmSpecification"]["TrainingImage"] for sent in (first, second)]
    assert [image.split("-")[-2] for image in images] == ["gpu", "cpu"]


def test_without_fallbacks_there_is_nothing_to_fall_back_on() -> None:
    assert call(on(instance_type=P4D)).fallback is None


def test_a_group_is_called_what_sagemaker_lets_it_be_called() -> None:
    request = sent(job(cluster={"groups": [{"name": "GPU-group.1", "instance_type": P4D}]}))
    [group] = request["ResourceConfig"]["InstanceGroups"]
    assert group["InstanceGroupName"] == "GPU-group.1"


@pytest.mark.parametrize("default", [0, -1, 2.5, 2.0])
def test_a_count_s_default_is_a_whole_number_from_1_on(default: float) -> None:
    cluster = {"instance_type": P4D, "instance_count": {"parameter": "nodes"}}
    given = {"nodes": {"type": "number", "default": default}}
    found = refused(job(cluster=cluster), parameters=given)
    assert found["cluster.instance_count"].startswith("expected a whole number")


def test_rules_hold_for_what_is_known_in_the_run_only() -> None:
    plan = {"instance_type": P4D, "training_plan": {"parameter": "plan"}}
    found = refused(job(cluster=plan, spot={"max_wait_s": 90_000}), parameters={"plan": {}})
    assert "can't be had with spot capacity" in found["cluster.training_plan"]


@pytest.mark.parametrize(
    "extra",
    [
        {"VpcConfig": {"parameter": "given"}},
        {"InputDataConfig": {"parameter": "given"}},
        {"ResourceConfig": {"InstancePlacementConfig": {"parameter": "given"}}},
        {"ResourceConfig": {"KeepAlivePeriodInSeconds": {"parameter": "given"}}},
        {"ResourceConfig": {"InstanceGroups": {"parameter": "given"}}},
    ],
)
def test_a_reference_in_further_fields_is_never_taken_for_its_value(extra: dict[str, Any]) -> None:
    channels = {"d": {"kind": "efs", "file_system_id": "fs-0123456789abcdef0", "path": "/x"}}
    mounted = {} if "InputDataConfig" in extra else {"channels": channels}
    found = refused(job(**mounted, extra_request=extra, checkpoints={"uri": "nowhere"}))
    assert "checkpoints.uri" in found


@pytest.mark.parametrize("further", [[], [{"name": "data", "instance_type": "ml.m5.xlarge"}]])
@pytest.mark.parametrize("kind", ["mpi", "smddp"])
def test_a_group_known_in_the_run_only_is_there_all_the_same(
    kind: str, further: list[dict[str, Any]]
) -> None:
    gpu = {
        "name": "gpu",
        "instance_type": {"parameter": "machine"},
        "instance_count": {"parameter": "nodes"},
    }
    source = {"entry_point": "train.py", "uri": "s3://code/sourcedir.tar.gz"}
    strategy = {"kind": kind, "instance_group": "gpu"}
    parameters = {"machine": {"default": P4D}, "nodes": {"type": "number", "default": 2}}
    given = job(cluster={"groups": [gpu, *further]}, strategy=strategy, source=source)
    request: Any = call(given, parameters=parameters).operation.request
    assert request["HyperParameters"]["sagemaker_distribution_instance_groups"] == '["gpu"]'
    assert facts(given, parameters=parameters) == [f"2 x {P4D}: 16 processes, 16 replicas"]
    given["strategy"] = {"kind": kind, "instance_group": "gpus"}
    found = refused(given, parameters=parameters)["strategy.instance_group"]
    assert "there is no instance group 'gpus'; did you mean 'gpu'?" in found


def test_a_group_s_type_is_judged_where_its_count_is_not_known() -> None:
    gpu = {"name": "gpu", "instance_type": "ml.g5.xlarge", "instance_count": {"parameter": "nodes"}}
    given = job(cluster={"groups": [gpu]}, strategy={"kind": "smddp", "instance_group": "gpu"})
    found = refused(given, parameters={"nodes": {"type": "number"}})
    assert "SMDDP does not run on ml.g5.xlarge" in found["strategy"]


def test_waiting_goes_round_as_often_as_the_names_of_jobs_allow() -> None:
    day = call(on(instance_type=P4D) | {"wait_for_capacity_h": 6}).fallback
    week = call(on(instance_type=P4D) | {"wait_for_capacity_h": 168}).fallback
    assert day is not None
    assert week is not None
    assert (day.label, day.wait_s, day.pause_s) == (f"1 x {P4D}", 6 * 3600, 900)
    assert week.wait_s / week.pause_s == 48
    assert call(on(instance_type=P4D)).fallback is None


@pytest.mark.parametrize(
    ("cluster", "label"),
    [
        (
            {
                "groups": [
                    {"name": "gpu", "instance_type": P4D, "instance_count": 2},
                    {"name": "data", "instance_type": "ml.c5.18xlarge"},
                ]
            },
            f"2 x {P4D} + 1 x ml.c5.18xlarge",
        ),
        (
            {"preferences": [{"instance_type": P4D}, {"instance_type": "ml.p5.48xlarge"}]},
            f"1 x {P4D} or 1 x ml.p5.48xlarge",
        ),
    ],
)
def test_every_cluster_that_is_waited_for_has_a_name(cluster: dict[str, Any], label: str) -> None:
    fallback = call(on(**cluster) | {"wait_for_capacity_h": 1}).fallback
    assert fallback is not None
    assert fallback.label == label


@pytest.mark.parametrize("hours", [0, -1, 169, float("nan")])
def test_hours_of_waiting_are_more_than_0_and_a_week_at_the_most(hours: float) -> None:
    assert "wait_for_capacity_h" in refused(on(instance_type=P4D) | {"wait_for_capacity_h": hours})


@pytest.mark.parametrize(
    ("quota", "waits"),
    [
        ("ml.p3.2xlarge for training job usage", True),
        ("ml.p3.2xlarge for spot training job usage", True),
        ("Number of instances across all processing jobs", True),
        ("Total number of trial components allowed", False),
    ],
)
def test_quotas_of_instances_are_waited_for(quota: str, waits: bool) -> None:
    step = call(on(instance_type=P4D) | {"wait_for_capacity_h": 1})
    assert step.fallback is not None
    unit = "Instances" if waits else "Trial Components"
    message = (
        f"The account-level service limit '{quota}' is {{}} {unit}, with current utilization of 4 "
        f"{unit} and a request delta of 1 {unit}. Please contact AWS support to request an "
        "increase for this limit."
    )
    code = "ResourceLimitExceeded"
    assert bool(step.fallback.refused(code, message.format(4))) == waits
    assert not step.fallback.is_futile(code, message.format(10))
    assert step.fallback.is_futile(code, message.format(0)) == waits


def test_one_process_is_told_in_the_singular() -> None:
    source = {"entry_point": "train.py", "uri": "s3://code/sourcedir.tar.gz"}
    given = job(cluster={"instance_type": "ml.m5.large"}, source=source)
    assert facts(given) == ["1 x ml.m5.large: 1 process, 1 replica"]
