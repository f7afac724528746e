"""A pipeline like digits in the SageMaker Python SDK V2: train, evaluate, deploy what is good.

Fewer things happen in it: its data is not copied, one model is evaluated, nothing is cleaned up.
"""

from boto3 import Session
from sagemaker.estimator import Estimator
from sagemaker.inputs import TrainingInput
from sagemaker.model import Model
from sagemaker.processing import ProcessingInput, ProcessingOutput, ScriptProcessor
from sagemaker.workflow.condition_step import ConditionStep
from sagemaker.workflow.conditions import ConditionGreaterThanOrEqualTo
from sagemaker.workflow.functions import Join, JsonGet
from sagemaker.workflow.model_step import ModelStep
from sagemaker.workflow.parameters import ParameterString
from sagemaker.workflow.pipeline import Pipeline
from sagemaker.workflow.pipeline_context import PipelineSession
from sagemaker.workflow.properties import PropertyFile
from sagemaker.workflow.steps import ProcessingStep, TrainingStep

ROLE = "arn:aws:iam::111122223333:role/SageMakerExecution"


def pipeline() -> Pipeline:
    aws = Session(
        region_name="us-east-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",  # noqa: S106
    )
    session = PipelineSession(boto_session=aws, default_bucket="amzn-s3-demo-bucket")
    data = ParameterString(name="data")
    image = ParameterString(name="training_image")
    serving = ParameterString(name="inference_image")
    machine = ParameterString(name="instance_type", default_value="ml.c5.xlarge")
    estimator = Estimator(
        image_uri=image,
        role=ROLE,
        instance_count=2,
        instance_type=machine,
        max_run=3600,
        hyperparameters={"epochs": 4, "batch_size": 32, "learning_rate": 0.02},
        metric_definitions=[{"Name": "train:loss", "Regex": "train:loss=([0-9.]+)"}],
        output_path="s3://amzn-s3-demo-bucket/digits/models",
        sagemaker_session=session,
    )
    train = TrainingStep(
        name="train",
        step_args=estimator.fit({"training": TrainingInput(Join("/", [data, "train"]))}),
    )
    processor = ScriptProcessor(
        image_uri=image,
        command=["python3"],
        role=ROLE,
        instance_count=1,
        instance_type=machine,
        sagemaker_session=session,
    )
    scores = PropertyFile(name="scores", output_name="scores", path="scores.json")
    folder = "/opt/ml/processing"
    evaluate = ProcessingStep(
        name="evaluate",
        step_args=processor.run(
            code="s3://amzn-s3-demo-bucket/digits/evaluate.py",
            inputs=[
                ProcessingInput(
                    source=train.properties.ModelArtifacts.S3ModelArtifacts,
                    destination=f"{folder}/model",
                ),
                ProcessingInput(source=Join("/", [data, "holdout"]), destination=f"{folder}/data"),
            ],
            outputs=[
                ProcessingOutput(
                    output_name="scores",
                    source=f"{folder}/scores",
                    destination="s3://amzn-s3-demo-bucket/digits/scores",
                )
            ],
        ),
        property_files=[scores],
    )
    model = Model(
        image_uri=serving,
        model_data=train.properties.ModelArtifacts.S3ModelArtifacts,
        role=ROLE,
        sagemaker_session=session,
    )
    deploy = ModelStep(name="deploy", step_args=model.create(instance_type="ml.c5.xlarge"))
    good = ConditionStep(
        name="good",
        conditions=[
            ConditionGreaterThanOrEqualTo(
                left=JsonGet(step_name=evaluate.name, property_file=scores, json_path="accuracy"),
                right=0.9,
            )
        ],
        if_steps=[deploy],
        else_steps=[],
    )
    return Pipeline(
        name="digits",
        parameters=[data, image, serving, machine],
        steps=[train, evaluate, good],
        sagemaker_session=session,
    )


if __name__ == "__main__":
    print(pipeline().definition())
