"""SageMaker Pipelines become pipelines that make the same requests; what differs is told."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestration import Pipeline, PipelineError
from orchestration.backends import airflow, stepfunctions
from orchestration.importing import Imported, from_data, from_definition
from orchestration.importing.steps.serving import with_url

RECORDED = Path(__file__).parents[1] / "data" / "sagemaker_pipelines" / "abalone.json"
ABALONE: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def abalone() -> Imported:
    return from_definition(ABALONE, file="abalone")


def told(imported: Imported) -> dict[str, str]:
    return {note.path: note.message for note in imported.notes}


def definition(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"Version": "2020-12-01", "Steps": list(steps), **more}


def invoked(name: str, **more: Any) -> dict[str, Any]:
    arn = f"arn:aws:lambda:us-east-1:111122223333:function:{name}"
    return {"Name": name, "Type": "Lambda", "FunctionArn": arn, "Arguments": {}, **more}


def test_what_the_sdk_writes_becomes_a_pipeline_for_both_backends(abalone: Imported) -> None:
    workflow = Pipeline.parse(yaml.safe_load(abalone.yaml())).lower()
    assert "createTrainingJob.sync" in json.dumps(stepfunctions.render(workflow))
    assert airflow.render(workflow).tasks
    kinds = {name: stage["kind"] for name, stage in abalone.description["stages"].items()}
    assert kinds == {
        "abalone_process": "processing_job",
        "abalone_train": "training_job",
        "abalone_tune": "tuning_job",
        "abalone_eval": "processing_job",
        "abalone_register_register_mode": "model_registration",
        "abalone_score": "batch_transform",
        "tell": "aws_call",
        "abalone_fail": "fail",
        "again": "aws_call",
    }


def test_properties_are_references_to_outputs(abalone: Imported) -> None:
    stages = abalone.description["stages"]
    channels = stages["abalone_train"]["channels"]
    assert channels["train"]["uri"] == {"ref": "abalone_process.train"}
    assert stages["abalone_eval"]["inputs"]["input_1"]["uri"] == {
        "ref": "abalone_train.model_artifacts"
    }
    assert stages["abalone_score"]["model_data"] == {
        "join": [
            "s3://amzn-s3-demo-bucket/models/",
            {"ref": "abalone_tune.job_name"},
            "/output/model.tar.gz",
        ]
    }
    assert stages["tell"]["request"]["Payload"]["model"] == {
        "ref": "abalone_register_register_mode.model_package"
    }


def test_a_model_is_that_of_the_transform_that_alone_uses_it(abalone: Imported) -> None:
    stage = abalone.description["stages"]["abalone_score"]
    assert {"model_name", "after", "environment"}.isdisjoint(stage)
    assert (stage["model_archive"], stage["keep_model"]) == (True, True)
    assert stage["image"].endswith("/sagemaker-xgboost:1.0-1-cpu-py3")


def test_a_model_that_others_read_too_is_a_call_of_its_own() -> None:
    changed = copy.deepcopy(ABALONE)
    inside = changed["Steps"][4]["Arguments"]["IfSteps"]
    inside[3]["Arguments"]["name"] = {"Get": "Steps.AbaloneModel-CreateModel.ModelName"}
    stages = from_definition(changed, file="abalone").description["stages"]
    name = {"join": ["abalone-abalone-model-create-model-", {"run": "id"}]}
    assert stages["abalone_model_create_model"]["request"]["ModelName"] == name
    assert stages["abalone_score"]["model_name"] == name
    assert stages["abalone_score"]["after"] == ["abalone_model_create_model"]


def test_a_model_that_a_transform_can_t_say_is_a_call_of_its_own() -> None:
    changed = copy.deepcopy(ABALONE)
    container = changed["Steps"][4]["Arguments"]["IfSteps"][0]["Arguments"]["PrimaryContainer"]
    container["ImageConfig"] = {"RepositoryAccessMode": "Platform"}
    stages = from_definition(changed, file="abalone").description["stages"]
    kinds = (stages["abalone_model_create_model"]["kind"], stages["abalone_score"]["kind"])
    assert kinds == ("aws_call", "batch_transform")


ROLE = "arn:aws:iam::111122223333:role/SageMaker"


def serving(
    container: dict[str, Any] | None = None,
    variant: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
    *further: dict[str, Any],
    **endpoint: Any,
) -> dict[str, Any]:
    """A definition that makes a model, a configuration and an endpoint."""
    own = container or {"Image": "image:1", "ModelDataUrl": "s3://bucket/model.tar.gz"}
    served = {
        "VariantName": "AllTraffic",
        "ModelName": {"Get": "Steps.Make.ModelName"},
        **(variant or {"InstanceType": "ml.m5.large", "InitialInstanceCount": 2}),
    }
    named = {"EndpointConfigName": {"Get": "Steps.Say.EndpointConfigName"}}
    model = {"ExecutionRoleArn": ROLE, "PrimaryContainer": own}
    return definition(
        invoked("Begin"),
        {"Name": "Make", "Type": "Model", "DependsOn": ["Begin"], "Arguments": model},
        {
            "Name": "Say",
            "Type": "EndpointConfig",
            "Arguments": {"ProductionVariants": [served], **(config or {})},
        },
        {"Name": "Serve", "Type": "Endpoint", "Arguments": {**named, **endpoint}},
        *further,
    )


def test_a_model_its_configuration_and_its_endpoint_are_a_deployment() -> None:
    used = invoked("Use", Arguments={"name": {"Get": "Steps.Serve.EndpointName"}})
    capture = {
        "EnableCapture": True,
        "InitialSamplingPercentage": 10,
        "DestinationS3Uri": "s3://bucket/seen",
        "CaptureOptions": [{"CaptureMode": "Input"}],
    }
    config = {"DataCaptureConfig": capture, "KmsKeyId": "alias/disks"}
    imported = from_definition(serving(None, None, config, used, EndpointName="digits"))
    stages = imported.description["stages"]
    assert list(stages) == ["begin", "serve", "use"]
    assert stages["serve"] == {
        "kind": "deployment",
        "image": "image:1",
        "model_data": "s3://bucket/model.tar.gz",
        "model_archive": True,
        "endpoint_name": "digits",
        "instance_type": "ml.m5.large",
        "instance_count": 2,
        "volume_kms_key": "alias/disks",
        "extra_request": {"CreateEndpointConfig": {"DataCaptureConfig": capture}},
        "after": ["begin"],
    }
    assert imported.description["role"] == ROLE
    assert stages["use"]["request"]["Payload"] == {"name": {"ref": "serve.endpoint_name"}}
    assert told(imported) == {
        "Steps[1]": "is made by serve, under a name that follows from its content",
        "Steps[2]": "is made by serve, under a name that follows from its content",
        "Steps[2].Arguments.ProductionVariants[0].VariantName": (
            "is 'AllTraffic', and what only a run knows in the pipeline's request"
        ),
        "Steps[3]": (
            "serve updates an endpoint of that name where there is one, once nothing changes it"
        ),
    }
    workflow = Pipeline.parse(yaml.safe_load(imported.yaml())).lower()
    assert "createEndpoint" in json.dumps(stepfunctions.render(workflow))


def test_an_endpoint_without_a_name_is_each_run_s_own() -> None:
    sparing = {"ServerlessConfig": {"MemorySizeInMB": 1024, "MaxConcurrency": 3}}
    package = {"ModelPackageName": "arn:aws:sagemaker:us-east-1:111122223333:model-package/m/1"}
    stage = from_definition(serving(package, sparing)).description["stages"]["serve"]
    assert stage["endpoint_name"] == {"join": ["imported-serve-", {"run": "id"}]}
    assert stage["serverless"] == {"memory_mb": 1024, "max_concurrency": 3}
    assert stage["model_package"] == package["ModelPackageName"]


@pytest.mark.parametrize(
    "given",
    [
        serving(variant={"InstanceType": "ml.m5.large", "EnableSSMAccess": True}),
        serving(config={"Tags": [{"Key": "a", "Value": "b"}]}),
        serving(None, None, None, invoked("Use", DependsOn=["Say"])),
    ],
    ids=["a field that no deployment has", "tags", "a step that waits for a part"],
)
def test_an_endpoint_that_no_deployment_says_is_made_by_calls(given: dict[str, Any]) -> None:
    stages = from_definition(given).description["stages"]
    operations = {name: stages[name]["operation"] for name in ("make", "say", "serve")}
    assert operations == {
        "make": "CreateModel",
        "say": "CreateEndpointConfig",
        "serve": "CreateEndpoint",
    }


EULA = {"ModelAccessConfig": {"AcceptEula": True}}
CONTENT = "arn:aws:sagemaker:us-east-1:111122223333:hub-content/hub/Model/llama/1.0.0"
HUB = {"HubAccessConfig": {"HubContentArn": CONTENT}}
FILES = {"S3Uri": "s3://bucket/llama/", "S3DataType": "S3Prefix", "CompressionType": "None"}


@pytest.mark.parametrize(
    "source",
    [
        {"S3DataSource": {**FILES, **EULA}},
        {"S3DataSource": {**FILES, **HUB}},
        {"S3DataSource": {**FILES, "ETag": "a"}},
    ],
    ids=["an accepted license", "a hub", "a version"],
)
def test_a_model_whose_data_has_more_than_a_place_is_a_call_of_its_own(
    source: dict[str, Any],
) -> None:
    container = {"Image": "image:1", "ModelDataSource": source}
    served = from_definition(serving(container)).description["stages"]
    assert served["make"]["request"]["PrimaryContainer"] == container
    changed = copy.deepcopy(ABALONE)
    changed["Steps"][4]["Arguments"]["IfSteps"][0]["Arguments"]["PrimaryContainer"] = container
    scored = from_definition(changed, file="abalone").description["stages"]
    made = scored["abalone_model_create_model"]
    assert made["request"]["PrimaryContainer"] == container
    assert scored["abalone_score"]["model_name"] == made["request"]["ModelName"]


def test_data_of_a_model_is_compared_with_all_that_is_said_of_it() -> None:
    plain = with_url({"Image": "i", "ModelDataSource": {"S3DataSource": FILES}})
    assert plain == {"Image": "i", "ModelDataUrl": "s3://bucket/llama/"}
    more = with_url({"ModelDataSource": {"S3DataSource": {**FILES, **EULA}}})
    kept = {"S3DataSource": EULA}
    assert more == {"ModelDataUrl": "s3://bucket/llama/", "ModelDataSource": kept}


def test_fields_called_like_a_link_are_kept() -> None:
    changed = copy.deepcopy(ABALONE)
    inside = changed["Steps"][4]["Arguments"]["IfSteps"]
    container = inside[0]["Arguments"]["PrimaryContainer"]
    container["Environment"] = {"ModelName": "bert", "K": "v"}
    inside[2]["Arguments"]["Environment"] = {"EndpointConfigName": "c", "K": "v"}
    imported = from_definition(changed, file="abalone")
    stage = imported.description["stages"]["abalone_score"]
    assert stage["environment"] == {"ModelName": "bert", "K": "v"}
    sent = {"Environment": {"EndpointConfigName": "c", "K": "v"}}
    assert stage["extra_request"] == {"CreateTransformJob": sent}
    assert [path for path in told(imported) if "Environment" in path] == []


def shadowed(model: Any) -> dict[str, Any]:
    """A definition whose endpoint sends some of its requests to another model, too."""
    machines = {"InstanceType": "ml.m5.large", "InitialInstanceCount": 1}
    shadow = {"VariantName": "next", "ModelName": model, "InitialVariantWeight": 1.0, **machines}
    return serving(
        None,
        {**machines, "InitialVariantWeight": 2.0},
        {"ShadowProductionVariants": [shadow]},
        EndpointName="digits",
    )


def test_a_shadow_keeps_its_model_and_its_share() -> None:
    imported = from_definition(shadowed("newer"))
    stage = imported.description["stages"]["serve"]
    [shadow] = stage["extra_request"]["CreateEndpointConfig"]["ShadowProductionVariants"]
    assert (shadow["ModelName"], shadow["InitialVariantWeight"]) == ("newer", 1.0)
    place = "Steps[2].Arguments.ProductionVariants[0].InitialVariantWeight"
    assert told(imported)[place] == "is 2.0, and 1.0 in the pipeline's request"
    assert not [path for path in told(imported) if "Shadow" in path]


def test_a_model_that_a_shadow_is_too_is_a_call_of_its_own() -> None:
    stages = from_definition(shadowed({"Get": "Steps.Make.ModelName"})).description["stages"]
    [shadow] = stages["say"]["request"]["ShadowProductionVariants"]
    assert stages["make"]["operation"] == "CreateModel"
    assert shadow["ModelName"] == stages["make"]["request"]["ModelName"]


def test_an_inference_component_is_a_call_that_is_waited_for() -> None:
    step = {
        "Name": "Copies",
        "Type": "InferenceComponent",
        "Arguments": {
            "EndpointName": "shared",
            "VariantName": "main",
            "Specification": {
                "ModelName": "m",
                "ComputeResourceRequirements": {"MinMemoryRequiredInMb": 1024},
            },
            "RuntimeConfig": {"CopyCount": 1},
        },
    }
    stage = from_definition(definition(step)).description["stages"]["copies"]
    assert stage["operation"] == "CreateInferenceComponent"
    assert stage["poll"]["success"] == ["InService"]


def test_a_branch_is_a_condition(abalone: Imported) -> None:
    stages = abalone.description["stages"]
    decided = {
        "all": [
            {
                "at_most": [
                    {"ref": "abalone_eval.regression_metrics_mse_value"},
                    {"parameter": "mse_threshold"},
                ]
            },
            {
                "not": {
                    "in": [
                        {"parameter": "training_instance_type"},
                        ["ml.m5.large", "ml.m5.2xlarge"],
                    ]
                }
            },
        ]
    }
    assert stages["abalone_score"]["when"] == decided
    assert stages["again"]["when"] == {
        "all": [
            *decided["all"],
            {"equal": [{"first_of": [{"ref": "tell.verdict"}, ""]}, "again"]},
        ]
    }
    assert stages["again"]["after"] == ["abalone_score"]
    assert stages["abalone_eval"]["report"] == {
        "result": "evaluation",
        "file": "evaluation.json",
        "numbers": {"regression_metrics_mse_value": "regression_metrics.mse.value"},
    }


def test_a_step_that_fails_is_a_stage_that_does(abalone: Imported) -> None:
    stages = abalone.description["stages"]
    assert stages["abalone_fail"] == {
        "kind": "fail",
        "when": {"not": stages["abalone_score"]["when"]},
        "cause": {"join": ["Execution failed due to MSE > ", {"parameter": "mse_threshold"}]},
    }


def test_all_that_is_otherwise_is_told(abalone: Imported) -> None:
    assert told(abalone) == {
        "Parameters[0].Name": "is called processing_instance_count here",
        "Parameters[1].Name": "is called training_instance_type here",
        "Parameters[2].EnumValues": "any value is taken here",
        "Parameters[2].Name": "is called model_approval_status here",
        "Parameters[3].Name": "is called input_data here",
        "Parameters[4].Name": "is called mse_threshold here",
        "Steps[0].Arguments.StoppingCondition": (
            "is added by the pipeline: {'MaxRuntimeInSeconds': 86400}"
        ),
        "Steps[0].CacheConfig": (
            "the stage does its work in every run; see unless_unchanged of data_staging"
        ),
        "Steps[3].Arguments.StoppingCondition": (
            "is added by the pipeline: {'MaxRuntimeInSeconds': 86400}"
        ),
        "Steps[4].Arguments.IfSteps[0]": (
            "is made by abalone_score, under a name of each run's own"
        ),
        "Steps[4].Arguments.IfSteps[1]": (
            "abalone_register_register_mode makes the group where there is none, waits until the "
            "version is completed, and marks it as the run's own"
        ),
        "Steps[4].Arguments.IfSteps[1].Arguments.ModelApprovalStatus": (
            "a version is PendingManualApproval where a run has another than Approved"
        ),
        "Steps[4].Arguments.IfSteps[2]": (
            "abalone_score takes its data for a folder, and fails if there are fewer predictions "
            "than objects"
        ),
        "Steps[4].Arguments.IfSteps[3].Arguments.when": (
            "nothing stands for Execution.StartDateTime; each run must be given the parameter "
            "execution_start_date_time"
        ),
    }


def registering(container: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The stage of the recorded registration with other fields."""
    changed = copy.deepcopy(ABALONE)
    request = changed["Steps"][4]["Arguments"]["IfSteps"][1]["Arguments"]
    request |= more
    request["InferenceSpecification"]["Containers"][0] |= container
    stages = from_definition(changed, file="abalone").description["stages"]
    return dict(stages["abalone_register_register_mode"])


def test_a_registration_is_approved_as_its_status_says() -> None:
    assert registering({})["approve_when"] == {
        "equal": [{"parameter": "model_approval_status"}, "Approved"]
    }
    stage = registering({}, ModelApprovalStatus="Approved", Domain="MACHINE_LEARNING")
    assert (stage["approval"], stage["extra_request"]) == (
        "approved",
        {"CreateModelPackage": {"Domain": "MACHINE_LEARNING"}},
    )


def test_a_registration_that_no_stage_says_is_a_call() -> None:
    for stage in (
        registering({"Framework": "XGBOOST"}),
        registering({}, ModelApprovalStatus="Rejected"),
    ):
        assert (stage["kind"], stage["operation"]) == ("aws_call", "CreateModelPackage")


def test_what_its_kind_can_t_say_is_a_call_with_the_request_as_it_is() -> None:
    changed = copy.deepcopy(ABALONE)
    changed["Parameters"].append({"Name": "Disk", "Type": "Integer", "DefaultValue": 50})
    cluster = changed["Steps"][1]["Arguments"]["ResourceConfig"]
    cluster["VolumeSizeInGB"] = {"Get": "Parameters.Disk"}
    imported = from_definition(changed, file="abalone")
    stage = imported.description["stages"]["abalone_train"]
    assert (stage["kind"], stage["operation"]) == ("aws_call", "CreateTrainingJob")
    assert stage["request"]["ResourceConfig"]["VolumeSizeInGB"] == {"parameter": "disk"}
    assert stage["poll"]["outputs"] == {
        "model_artifacts_s3_model_artifacts": "ModelArtifacts.S3ModelArtifacts"
    }
    data = imported.description["stages"]["abalone_eval"]["inputs"]["input_1"]["uri"]
    assert data == {"ref": "abalone_train.model_artifacts_s3_model_artifacts"}
    assert "the stage of its kind can't say it (cluster.volume_gib: " in told(imported)["Steps[1]"]


def test_an_output_that_its_kind_lacks_makes_it_a_call() -> None:
    changed = copy.deepcopy(ABALONE)
    asked = {"Get": "Steps.AbaloneTrain.CreationTime"}
    changed["Steps"][3]["Arguments"]["Environment"] = {"SINCE": asked}
    imported = from_definition(changed, file="abalone")
    assert imported.description["stages"]["abalone_train"]["kind"] == "aws_call"
    assert "CreationTime is no output of it" in told(imported)["Steps[1]"]


def test_a_step_that_nothing_does_is_told_and_its_output_asked_for() -> None:
    callback = {
        "Name": "Ask",
        "Type": "Callback",
        "SqsQueueUrl": "https://sqs.us-east-1.amazonaws.com/111122223333/ask",
        "Arguments": {},
    }
    used = invoked("Use", Arguments={"answer": {"Get": "Steps.Ask.OutputParameters['answer']"}})
    imported = from_definition(definition(callback, used), file="asking")
    assert list(imported.description["stages"]) == ["use"]
    assert imported.description["stages"]["use"]["request"]["Payload"] == {
        "answer": {"parameter": "ask_output_parameters_answer"}
    }
    assert told(imported) == {
        "Steps[0]": "Ask: no stage does what a Callback step does",
        "Steps[0].SqsQueueUrl": "is left out",
        "Steps[1].Arguments.answer": (
            "nothing stands for Steps.Ask.OutputParameters['answer']; each run must be given the "
            "parameter ask_output_parameters_answer"
        ),
    }


def test_a_condition_of_an_unknown_type_is_asked_of_each_run() -> None:
    odd = {"Type": "Matches", "LeftValue": "a", "RightValue": "b"}
    decided = {
        "Name": "Odd",
        "Type": "Condition",
        "Arguments": {"Conditions": [odd], "IfSteps": [invoked("A")], "ElseSteps": [invoked("B")]},
    }
    stages = from_definition(definition(decided), file="odd").description["stages"]
    parameter = {"parameter": "steps_0_arguments_conditions_0"}
    assert (stages["a"]["when"], stages["b"]["when"]) == (parameter, {"not": parameter})


def test_a_step_after_a_condition_waits_for_what_it_decides_on() -> None:
    small = {"Type": "LessThan", "LeftValue": {"Get": "Parameters.N"}, "RightValue": 3}
    decided = {
        "Name": "Small",
        "Type": "Condition",
        "DependsOn": ["Begin"],
        "Arguments": {"Conditions": [small], "IfSteps": [invoked("A")], "ElseSteps": []},
    }
    parameters = [{"Name": "N", "Type": "Integer"}]
    steps = (invoked("Begin"), decided, invoked("End", DependsOn=["Small"]))
    stages = from_definition(definition(*steps, Parameters=parameters)).description["stages"]
    assert stages["a"]["after"] == ["begin"]
    assert stages["end"]["after"] == ["a"]


def test_steps_of_emr_are_added_and_followed() -> None:
    step = {
        "Name": "Spark",
        "Type": "EMR",
        "Arguments": {
            "ClusterId": "j-1234567890ABC",
            "StepConfig": {
                "HadoopJarStep": {"Jar": "command-runner.jar", "Args": ["spark-submit"]}
            },
        },
    }
    stage = from_definition(definition(step)).description["stages"]["spark"]
    assert stage["request"]["Steps"][0]["ActionOnFailure"] == "CONTINUE"
    assert stage["poll"]["request"]["StepId"] == {"ref": "spark.step_id"}


def test_what_describe_pipeline_says_is_read_with_its_name() -> None:
    described = {"PipelineName": "AbalonePipeline", "PipelineDefinition": json.dumps(ABALONE)}
    assert from_data(described).description["name"] == "abalone-pipeline"


def test_two_imports_are_equal(abalone: Imported) -> None:
    again = from_definition(ABALONE, file="abalone")
    assert (again.yaml(), again.notes) == (abalone.yaml(), abalone.notes)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"Version": "2020-12-01", "Steps": {}}, "Steps: expected a list of steps"),
        (definition({"Name": "A"}), r"Steps\[0\]: expected a step with Name and Type"),
        (definition(invoked("A"), invoked("A")), "another step is called 'A', too"),
        ({"PipelineDefinition": "{"}, "PipelineDefinition: is no JSON"),
        ({"StartAt": "A", "States": {}}, "StartAt: names no state"),
    ],
)
def test_what_is_no_definition_is_refused(data: dict[str, Any], words: str) -> None:
    with pytest.raises(PipelineError, match=words):
        from_data(data)


def test_a_request_that_aws_would_refuse_is_refused_with_its_place() -> None:
    step = {
        "Name": "Make",
        "Type": "Model",
        "Arguments": {"ExecutionRole": "arn:aws:iam::1:role/r"},
    }
    with pytest.raises(PipelineError, match=r"Steps\[0\]: as stage make: .*ExecutionRole"):
        from_definition(definition(step))


def test_a_step_that_aws_would_refuse_is_left_out_and_told() -> None:
    changed = copy.deepcopy(ABALONE)
    changed["Steps"][0]["Arguments"]["ProcessingOutputs"] = []
    imported = from_definition(changed, file="abalone")
    assert "abalone_process" not in imported.description["stages"]
    assert "CreateProcessingJob ProcessingOutputs: is unknown" in told(imported)["Steps[0]"]
    uri = imported.description["stages"]["abalone_train"]["channels"]["train"]["uri"]
    assert uri == {"parameter": "abalone_process_processing_output_config"}


def test_outputs_of_two_places_have_two_names() -> None:
    asked = {
        "one": {"Get": "Steps.Q.OutputParameters['aB']"},
        "other": {"Get": "Steps.Q.OutputParameters['a_b']"},
    }
    stages = from_definition(definition(invoked("Q"), invoked("Use", Arguments=asked)))
    stages_ = stages.description["stages"]
    assert stages_["q"]["results"] == {"a_b": "Payload.aB", "a_b_2": "Payload.a_b"}
    assert stages_["use"]["request"]["Payload"] == {
        "one": {"ref": "q.a_b"},
        "other": {"ref": "q.a_b_2"},
    }


def test_data_that_looks_like_a_reference_of_ours_is_not_taken_for_one() -> None:
    imported = from_definition(definition(invoked("A", Arguments={"x": {"run": "id"}})))
    payload = imported.description["stages"]["a"]["request"]["Payload"]
    assert payload == {"x": {"parameter": "run_id"}}
    assert "nothing stands for {'run': 'id'}" in told(imported)["Steps[0].Arguments.x"]


def test_a_step_that_is_waited_for_and_not_there_is_refused() -> None:
    with pytest.raises(PipelineError, match=r"Steps\[0\]\.DependsOn: there is no step 'Nope'"):
        from_definition(definition(invoked("A", DependsOn=["Nope"])))


def condition(name: str, left: Any, **arguments: Any) -> dict[str, Any]:
    tested = [{"Type": "Equals", "LeftValue": left, "RightValue": "a"}]
    return {
        "Name": name,
        "Type": "Condition",
        "Arguments": {"Conditions": tested, "IfSteps": [], "ElseSteps": [], **arguments},
    }


def test_steps_that_are_left_out_still_stand_in_the_order() -> None:
    result = {"Get": "Steps.A.OutputParameters['x']"}
    ask = {"Name": "Ask", "Type": "Callback", "Arguments": {"x": result}}
    used = invoked("C", Arguments={"v": {"Get": "Steps.Ask.OutputParameters['y']"}})
    steps = (invoked("A"), ask, invoked("B", DependsOn=["Ask"]), used)
    stages = from_definition(definition(*steps)).description["stages"]
    assert [stages[name].get("after") for name in "abc"] == [None, ["a"], ["a"]]


def test_a_condition_without_steps_still_stands_in_the_order() -> None:
    empty = condition("K", {"Get": "Steps.A.OutputParameters['x']"})
    steps = (invoked("A"), empty, invoked("Z", DependsOn=["K"]))
    imported = from_definition(definition(*steps))
    assert imported.description["stages"]["z"]["after"] == ["a"]
    assert told(imported) == {}


def test_fields_of_conditions_are_told() -> None:
    decided = {
        **condition("K", {"Get": "Parameters.p"}, IfSteps=[invoked("A")]),
        "DisplayName": "k",
        "Odd": 1,
    }
    imported = from_definition(definition(decided, Parameters=[{"Name": "p"}]))
    assert {"Steps[0].DisplayName", "Steps[0].Odd"} <= told(imported).keys()


def test_a_tuning_job_says_all_of_its_request() -> None:
    changed = copy.deepcopy(ABALONE)
    tune = changed["Steps"][2]["Arguments"]
    tune["HyperParameterTuningJobConfig"] |= {
        "Strategy": "Hyperband",
        "StrategyConfig": {"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": 9}},
        "RandomSeed": 0,
        "TuningJobCompletionCriteria": {
            "TargetObjectiveMetricValue": 0.5,
            "ConvergenceDetected": {"CompleteOnConvergence": "Enabled"},
        },
    }
    ranges = tune["HyperParameterTuningJobConfig"]["ParameterRanges"]
    ranges["IntegerParameterRanges"] = [{"Name": "depth", "MinValue": "2", "MaxValue": "9"}]
    ranges["CategoricalParameterRanges"] = [{"Name": "tree", "Values": ["exact", "hist"]}]
    tune["WarmStartConfig"] = {
        "ParentHyperParameterTuningJobs": [{"HyperParameterTuningJobName": "before"}],
        "WarmStartType": "TransferLearning",
    }
    imported = from_definition(changed, file="abalone")
    stage = imported.description["stages"]["abalone_tune"]
    assert (stage["kind"], stage["search"], stage["seed"]) == ("tuning_job", "hyperband", 0)
    assert stage["ranges"] == {
        "eta": {"continuous": [0.01, 0.3], "scaling": "auto"},
        "tree": {"categorical": ["exact", "hist"]},
        "depth": {"integer": [2, 9]},
    }
    assert stage["end"] == {"objective": 0.5, "converged": True}
    assert stage["warm_start"] == {"parents": ["before"], "type": "transfer"}
    assert not [path for path in told(imported) if path.startswith("Steps[2]")]


def test_the_role_of_tuned_jobs_is_that_of_the_pipeline() -> None:
    tune = copy.deepcopy(ABALONE["Steps"][2])
    imported = from_definition(definition({**tune, "DependsOn": []}))
    role = tune["Arguments"]["TrainingJobDefinition"]["RoleArn"]
    assert imported.description["role"] == role
    assert not [path for path in told(imported) if path.endswith("RoleArn")]


def test_a_role_that_is_not_sent_is_told_in_the_words_of_a_pipeline() -> None:
    changed = copy.deepcopy(ABALONE)
    other = "arn:aws:iam::111122223333:role/Other"
    changed["Parameters"].append({"Name": "Role", "Type": "String"})
    changed["Steps"][0]["Arguments"]["RoleArn"] = {"Get": "Parameters.Role"}
    changed["Steps"][2]["Arguments"]["TrainingJobDefinition"]["RoleArn"] = other
    message = told(from_definition(changed))["Steps[2].Arguments.TrainingJobDefinition.RoleArn"]
    assert message == f"is '{other}', and {{'parameter': 'role'}} in the pipeline's request"


def test_a_tuning_job_of_several_definitions_is_sent_as_it_is() -> None:
    changed = copy.deepcopy(ABALONE)
    tune = changed["Steps"][2]["Arguments"]
    tune["TrainingJobDefinitions"] = [{**tune.pop("TrainingJobDefinition"), "DefinitionName": "a"}]
    stages = from_definition(changed, file="abalone").description["stages"]
    assert stages["abalone_tune"]["kind"] == "aws_call"


def test_a_transform_says_all_of_its_request() -> None:
    changed = copy.deepcopy(ABALONE)
    score = changed["Steps"][4]["Arguments"]["IfSteps"][2]["Arguments"]
    score["TransformInput"]["DataSource"]["S3DataSource"]["S3Uri"] = "s3://bucket/batch.csv"
    score["TransformOutput"] |= {"Accept": "text/csv", "AssembleWith": "Line"}
    score |= {"BatchStrategy": "MultiRecord", "MaxPayloadInMB": 4, "Environment": {"A": "b"}}
    score["DataProcessing"] = {"JoinSource": "Input", "OutputFilter": "$[0]"}
    imported = from_definition(changed, file="abalone")
    stage = imported.description["stages"]["abalone_score"]
    assert (stage["kind"], stage["one_file"], stage["join_input"]) == (
        "batch_transform",
        True,
        True,
    )
    assert stage["extra_request"] == {"CreateTransformJob": {"Environment": {"A": "b"}}}
    assert list(stage) == [
        *("kind", "when", "image", "model_data", "model_archive", "keep_model", "data", "one_file"),
        *("content_type", "split", "output_uri"),
        *("accept", "assemble", "instance_count", "instance_type", "join_input", "output_filter"),
        *("strategy", "max_payload_mb", "extra_request"),
    ]
    place = "Steps[4].Arguments.IfSteps[2]"
    assert [path for path in told(imported) if path.startswith(place)] == [place]
