"""A state machine like digits in AWS CDK: train, evaluate, deploy what is good.

Fewer things happen in it: its data is not copied, one model is evaluated, nothing is cleaned up.
"""

from typing import Any

from aws_cdk import App, Duration, Stack
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

ROLE = "arn:aws:iam::111122223333:role/SageMakerExecution"
IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/training:1"
BUCKET = "s3://amzn-s3-demo-bucket/digits"
MACHINES = {"InstanceCount": 1, "InstanceType": "ml.c5.xlarge"}


class Digits(Stack):
    def __init__(self, scope: Construct) -> None:
        super().__init__(scope, "digits")
        train = self.call(
            "createTrainingJob",
            TrainingJobName=sfn.JsonPath.string_at("$$.Execution.Name"),
            RoleArn=ROLE,
            AlgorithmSpecification={"TrainingImage": IMAGE, "TrainingInputMode": "File"},
            HyperParameters={"epochs": "4", "batch_size": "32"},
            InputDataConfig=[
                {
                    "ChannelName": "training",
                    "DataSource": {
                        "S3DataSource": {
                            "S3DataType": "S3Prefix",
                            "S3Uri": sfn.JsonPath.format(
                                "{}/train", sfn.JsonPath.string_at("$.data")
                            ),
                        }
                    },
                }
            ],
            OutputDataConfig={"S3OutputPath": f"{BUCKET}/models"},
            ResourceConfig={**MACHINES, "InstanceCount": 2, "VolumeSizeInGB": 30},
            StoppingCondition={"MaxRuntimeInSeconds": 3600},
        )
        evaluate = self.call(
            "createProcessingJob",
            ProcessingJobName=sfn.JsonPath.string_at("$$.Execution.Name"),
            RoleArn=ROLE,
            AppSpecification={"ImageUri": IMAGE, "ContainerEntrypoint": ["python3", "evaluate.py"]},
            ProcessingResources={"ClusterConfig": {**MACHINES, "VolumeSizeInGB": 30}},
        )
        read = tasks.CallAwsService(
            self,
            "read",
            service="s3",
            action="getObject",
            parameters={"Bucket": "amzn-s3-demo-bucket", "Key": "digits/scores.json"},
            iam_resources=["*"],
            result_path="$.scores",
        )
        deploy = (
            self.call("createModel", ModelName="digits", ExecutionRoleArn=ROLE)
            .next(self.call("createEndpointConfig", EndpointConfigName="digits"))
            .next(self.call("createEndpoint", EndpointName="digits"))
        )
        good = sfn.Choice(self, "good").when(
            sfn.Condition.number_greater_than_equals("$.scores.accuracy", 0.9), deploy
        )
        good.otherwise(sfn.Fail(self, "not good"))
        wait = sfn.Wait(self, "wait", time=sfn.WaitTime.duration(Duration.seconds(30)))
        sfn.StateMachine(
            self,
            "machine",
            definition_body=sfn.DefinitionBody.from_chainable(
                train.next(wait).next(evaluate).next(read).next(good)
            ),
        )

    def call(self, action: str, **parameters: Any) -> tasks.CallAwsService:
        return tasks.CallAwsService(
            self,
            action,
            service="sagemaker",
            action=action,
            parameters=parameters,
            iam_resources=["*"],
            result_path=sfn.JsonPath.DISCARD,
        )


if __name__ == "__main__":
    app = App()
    Digits(app)
    app.synth()
