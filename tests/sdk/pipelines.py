"""A SageMaker Pipeline with a step of most kinds, built with the SDK's V2."""

from __future__ import annotations

import json
from typing import Any

F = "/opt/ml/processing"
BUCKET = "amzn-s3-demo-bucket"
ROLE = "arn:aws:iam::111122223333:role/SageMakerExecution"
REGISTRY = "246618743249.dkr.ecr.us-west-2.amazonaws.com"
SKLEARN = f"{REGISTRY}/sagemaker-scikit-learn:0.23-1-cpu-py3"
XGBOOST = f"{REGISTRY}/sagemaker-xgboost:1.0-1-cpu-py3"
FUNCTION = "arn:aws:lambda:us-west-2:111122223333:function"


def definition() -> dict[str, Any]:
    """Return what the SDK would send to ``CreatePipeline``."""
    from boto3 import Session
    from sagemaker.workflow.parameters import ParameterFloat, ParameterInteger, ParameterString
    from sagemaker.workflow.pipeline import Pipeline
    from sagemaker.workflow.pipeline_context import PipelineSession

    aws = Session(
        region_name="us-west-2",
        aws_access_key_id="none",
        aws_secret_access_key="none",
    )
    session = PipelineSession(boto_session=aws, default_bucket=BUCKET)
    given = {
        "count": ParameterInteger(name="ProcessingInstanceCount", default_value=1),
        "machine": ParameterString(name="TrainingInstanceType", default_value="ml.m5.xlarge"),
        "approval": ParameterString(
            name="ModelApprovalStatus",
            default_value="PendingManualApproval",
            enum_values=["PendingManualApproval", "Approved"],
        ),
        "data": ParameterString(name="InputData", default_value=f"s3://{BUCKET}/abalone.csv"),
        "threshold": ParameterFloat(name="MseThreshold", default_value=6.0),
    }
    process = _process(session, given)
    estimator, channels = _training(session, given, process)
    steps = [process, *_steps(session, given, process, estimator, channels)]
    whole = Pipeline(
        name="AbalonePipeline",
        parameters=list(given.values()),
        steps=steps,
        sagemaker_session=session,
    )
    read: dict[str, Any] = json.loads(whole.definition())
    return read


def _out(process: Any, name: str) -> Any:
    return process.properties.ProcessingOutputConfig.Outputs[name].S3Output.S3Uri


def _process(session: Any, given: dict[str, Any]) -> Any:
    from sagemaker.processing import ProcessingInput, ProcessingOutput, ScriptProcessor
    from sagemaker.workflow.execution_variables import ExecutionVariables
    from sagemaker.workflow.functions import Join
    from sagemaker.workflow.steps import CacheConfig, ProcessingStep

    processor = ScriptProcessor(
        image_uri=SKLEARN,
        command=["python3"],
        role=ROLE,
        instance_count=given["count"],
        instance_type="ml.m5.xlarge",
        sagemaker_session=session,
        env={"MODE": "full"},
    )
    run = ExecutionVariables.PIPELINE_EXECUTION_ID
    arguments = processor.run(
        code=f"s3://{BUCKET}/code/preprocess.py",
        arguments=["--seed", "7"],
        inputs=[ProcessingInput(source=given["data"], destination=f"{F}/input")],
        outputs=[
            ProcessingOutput(
                output_name=name,
                source=f"{F}/{name}",
                destination=Join("/", [f"s3://{BUCKET}", "runs", run, name]),
            )
            for name in ("train", "validation", "test")
        ],
    )
    cache = CacheConfig(enable_caching=True, expire_after="30d")
    return ProcessingStep(name="AbaloneProcess", cache_config=cache, step_args=arguments)


def _training(session: Any, given: dict[str, Any], process: Any) -> tuple[Any, dict[str, Any]]:
    from sagemaker.estimator import Estimator
    from sagemaker.inputs import TrainingInput

    estimator = Estimator(
        image_uri=XGBOOST,
        role=ROLE,
        instance_count=1,
        instance_type=given["machine"],
        output_path=f"s3://{BUCKET}/models",
        sagemaker_session=session,
        hyperparameters={"objective": "reg:linear", "num_round": 50},
    )
    names = ("train", "validation")
    return estimator, {
        name: TrainingInput(s3_data=_out(process, name), content_type="text/csv") for name in names
    }


def _steps(
    session: Any, given: dict[str, Any], process: Any, estimator: Any, channels: dict[str, Any]
) -> list[Any]:
    from sagemaker.tuner import ContinuousParameter, HyperparameterTuner
    from sagemaker.workflow.properties import PropertyFile
    from sagemaker.workflow.steps import TrainingStep, TuningStep

    train = TrainingStep(name="AbaloneTrain", step_args=estimator.fit(channels))
    tuner = HyperparameterTuner(
        estimator,
        "validation:rmse",
        {"eta": ContinuousParameter(0.01, 0.3)},
        objective_type="Minimize",
        max_jobs=4,
        max_parallel_jobs=2,
    )
    tune = TuningStep(name="AbaloneTune", step_args=tuner.fit(channels))
    report = PropertyFile(name="EvaluationReport", output_name="evaluation", path="evaluation.json")
    evaluate = _evaluation(session, process, train, report)
    inside = _served(session, given, tune)
    check, again = _conditions(session, given, evaluate, report, inside)
    return [train, tune, evaluate, check, again]


def _evaluation(session: Any, process: Any, train: Any, report: Any) -> Any:
    from sagemaker.processing import ProcessingInput, ProcessingOutput, ScriptProcessor
    from sagemaker.workflow.steps import ProcessingStep

    evaluator = ScriptProcessor(
        image_uri=XGBOOST,
        command=["python3"],
        role=ROLE,
        instance_count=1,
        instance_type="ml.m5.xlarge",
        sagemaker_session=session,
    )
    model = train.properties.ModelArtifacts.S3ModelArtifacts
    arguments = evaluator.run(
        code=f"s3://{BUCKET}/code/evaluate.py",
        inputs=[
            ProcessingInput(source=model, destination=f"{F}/model"),
            ProcessingInput(source=_out(process, "test"), destination=f"{F}/test"),
        ],
        outputs=[
            ProcessingOutput(
                output_name="evaluation",
                source=f"{F}/evaluation",
                destination=f"s3://{BUCKET}/evaluation",
            )
        ],
    )
    return ProcessingStep(name="AbaloneEval", property_files=[report], step_args=arguments)


def _served(session: Any, given: dict[str, Any], tune: Any) -> list[Any]:
    from sagemaker.lambda_helper import Lambda
    from sagemaker.model import Model
    from sagemaker.transformer import Transformer
    from sagemaker.workflow.execution_variables import ExecutionVariables
    from sagemaker.workflow.lambda_step import LambdaOutput, LambdaOutputTypeEnum, LambdaStep
    from sagemaker.workflow.model_step import ModelStep
    from sagemaker.workflow.steps import TransformStep

    best = tune.get_top_model_s3_uri(top_k=0, s3_bucket=BUCKET, prefix="models")
    model = Model(image_uri=XGBOOST, model_data=best, role=ROLE, sagemaker_session=session)
    create = ModelStep(name="AbaloneModel", step_args=model.create(instance_type="ml.m5.large"))
    version = model.register(
        content_types=["text/csv"],
        response_types=["text/csv"],
        inference_instances=["ml.t2.medium"],
        transform_instances=["ml.m5.large"],
        model_package_group_name="abalone",
        approval_status=given["approval"],
    )
    register = ModelStep(name="AbaloneRegister", step_args=version)
    transformer = Transformer(
        model_name=create.properties.ModelName,
        instance_count=1,
        instance_type="ml.m5.xlarge",
        output_path=f"s3://{BUCKET}/scores",
        sagemaker_session=session,
    )
    scored = transformer.transform(
        f"s3://{BUCKET}/batch", content_type="text/csv", split_type="Line"
    )
    score = TransformStep(name="AbaloneScore", step_args=scored)
    package = register.steps[0].properties.ModelPackageArn
    tell = LambdaStep(
        name="Tell",
        lambda_func=Lambda(function_arn=f"{FUNCTION}:tell", session=session),
        inputs={"model": package, "when": ExecutionVariables.START_DATETIME},
        outputs=[LambdaOutput("verdict", LambdaOutputTypeEnum.String)],
    )
    return [create, register, score, tell]


def _conditions(
    session: Any, given: dict[str, Any], evaluate: Any, report: Any, inside: list[Any]
) -> tuple[Any, Any]:
    from sagemaker.lambda_helper import Lambda
    from sagemaker.workflow import conditions
    from sagemaker.workflow.condition_step import ConditionStep
    from sagemaker.workflow.fail_step import FailStep
    from sagemaker.workflow.functions import Join, JsonGet
    from sagemaker.workflow.lambda_step import LambdaStep

    error = JsonGet(
        step_name=evaluate.name, property_file=report, json_path="regression_metrics.mse.value"
    )
    words = Join(on=" ", values=["Execution failed due to MSE >", given["threshold"]])
    among = conditions.ConditionIn(
        value=given["machine"], in_values=["ml.m5.large", "ml.m5.2xlarge"]
    )
    check = ConditionStep(
        name="AbaloneMSECond",
        conditions=[
            conditions.ConditionLessThanOrEqualTo(left=error, right=given["threshold"]),
            conditions.ConditionNot(among),
        ],
        if_steps=inside,
        else_steps=[FailStep(name="AbaloneFail", error_message=words)],
    )
    again = LambdaStep(
        name="Again",
        depends_on=[inside[2]],
        lambda_func=Lambda(function_arn=f"{FUNCTION}:again", session=session),
        inputs={},
        outputs=[],
    )
    verdict = inside[3].properties.Outputs["verdict"]
    said = ConditionStep(
        name="Said",
        conditions=[conditions.ConditionEquals(left=verdict, right="again")],
        if_steps=[again],
        else_steps=[],
    )
    return check, said
