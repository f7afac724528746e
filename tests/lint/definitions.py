"""Definitions that work, for faults to be planted in."""

from __future__ import annotations

from typing import Any

_ROLE = "arn:aws:iam::123456789012:role/SageMakerExecution"
_FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:score"
_QUEUE = "https://sqs.us-east-1.amazonaws.com/123456789012/approvals"
_CLEAN_UP = {"ErrorEquals": ["States.ALL"], "Next": "DeleteFileSystem"}

JSONATA: dict[str, Any] = {
    "Comment": "Trains on a file system of its own.",
    "QueryLanguage": "JSONata",
    "TimeoutSeconds": 86400,
    "StartAt": "Prepare",
    "States": {
        "Prepare": {
            "Type": "Pass",
            "Assign": {
                "job": "{% 'train-' & $states.context.Execution.Name %}",
                "bucket": "{% $states.input.bucket %}",
                "seeds": "{% [1..3].$string($) %}",
            },
            "Next": "CreateFileSystem",
        },
        "CreateFileSystem": {
            "Type": "Task",
            "Resource": "arn:aws:states:::aws-sdk:fsx:createFileSystem",
            "Arguments": {
                "FileSystemType": "LUSTRE",
                "StorageCapacity": 1200,
                "SubnetIds": ["subnet-0123456789abcdef0"],
                "LustreConfiguration": {"DeploymentType": "SCRATCH_2"},
            },
            "Assign": {"fileSystem": "{% $states.result.FileSystem.FileSystemId %}"},
            "Next": "Train",
        },
        "Train": {
            "Type": "Task",
            "Resource": "arn:aws:states:::sagemaker:createTrainingJob.sync",
            "Arguments": {
                "TrainingJobName": "{% $job & '-' & $states.context.State.RetryCount %}",
                "RoleArn": _ROLE,
                "AlgorithmSpecification": {"TrainingImage": "image", "TrainingInputMode": "File"},
                "OutputDataConfig": {"S3OutputPath": "{% 's3://' & $bucket & '/models' %}"},
                "ResourceConfig": {
                    "InstanceType": "ml.g5.xlarge",
                    "InstanceCount": 1,
                    "VolumeSizeInGB": 50,
                },
                "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
            },
            "Retry": [
                {
                    "ErrorEquals": ["SageMaker.AmazonSageMakerException"],
                    "IntervalSeconds": 5,
                    "MaxAttempts": 3,
                    "BackoffRate": 2,
                    "MaxDelaySeconds": 60,
                    "JitterStrategy": "FULL",
                },
                {"ErrorEquals": ["States.ALL"], "MaxAttempts": 1},
            ],
            "Catch": [
                {**_CLEAN_UP, "Assign": {"failure": "{% $states.errorOutput %}"}},
            ],
            "Output": {"artifact": "{% $states.result.ModelArtifacts.S3ModelArtifacts %}"},
            "Next": "Evaluate",
        },
        "Evaluate": {
            "Type": "Map",
            "Items": "{% $seeds %}",
            "MaxConcurrency": 2,
            "ItemSelector": {
                "seed": "{% $states.context.Map.Item.Value %}",
                "artifact": "{% $states.input.artifact %}",
            },
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "INLINE"},
                "StartAt": "Score",
                "States": {
                    "Score": {
                        "Type": "Task",
                        "Resource": "arn:aws:states:::lambda:invoke",
                        "Arguments": {
                            "FunctionName": _FUNCTION,
                            "Payload": {"seed": "{% $states.input.seed %}", "job": "{% $job %}"},
                        },
                        "TimeoutSeconds": 600,
                        "Assign": {"score": "{% $states.result.Payload.score %}"},
                        "Next": "Round",
                    },
                    "Round": {"Type": "Pass", "Output": "{% $round($score, 3) %}", "End": True},
                },
            },
            "Catch": [
                {**_CLEAN_UP, "Assign": {"failure": "{% $states.errorOutput %}"}},
            ],
            "Assign": {"best": "{% $max($states.result) %}"},
            "Next": "DeleteFileSystem",
        },
        "DeleteFileSystem": {
            "Type": "Task",
            "Resource": "arn:aws:states:::aws-sdk:fsx:deleteFileSystem",
            "Arguments": {"FileSystemId": "{% $fileSystem %}"},
            "Retry": [{"ErrorEquals": ["FSx.FSxException"], "IntervalSeconds": 30}],
            "Next": "Succeeded",
        },
        "Succeeded": {
            "Type": "Choice",
            "Choices": [
                {"Condition": "{% $exists($failure) %}", "Next": "Failed"},
                {"Condition": "{% $exists($best) and $best < 0.5 %}", "Next": "Weak"},
            ],
            "Default": "Approve",
        },
        "Approve": {
            "Type": "Task",
            "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
            "Arguments": {
                "QueueUrl": _QUEUE,
                "MessageBody": {"token": "{% $states.context.Task.Token %}", "job": "{% $job %}"},
            },
            "TimeoutSeconds": 86400,
            "HeartbeatSeconds": 3600,
            "Next": "Tell",
        },
        "Tell": {
            "Type": "Parallel",
            "Branches": [
                {
                    "StartAt": "Pause",
                    "States": {"Pause": {"Type": "Wait", "Seconds": 60, "End": True}},
                },
                {
                    "StartAt": "Publish",
                    "States": {
                        "Publish": {
                            "Type": "Task",
                            "Resource": "arn:aws:states:::sns:publish",
                            "Arguments": {
                                "TopicArn": "arn:aws:sns:us-east-1:123456789012:models",
                                "Message": "{% $job & ' is approved' %}",
                            },
                            "End": True,
                        }
                    },
                },
            ],
            "Next": "Done",
        },
        "Done": {"Type": "Succeed", "Output": {"job": "{% $job %}"}},
        "Weak": {"Type": "Fail", "Error": "TooWeak", "Cause": "{% $job & ' is too weak' %}"},
        "Failed": {"Type": "Fail", "Error": "TrainingFailed", "Cause": "{% $failure.Cause %}"},
    },
}

JSONPATH: dict[str, Any] = {
    "Comment": "Prepares objects, and runs a job over them.",
    "Version": "1.0",
    "StartAt": "Check",
    "States": {
        "Check": {
            "Type": "Task",
            "Resource": _FUNCTION,
            "InputPath": "$.request",
            "ResultPath": "$.check",
            "Retry": [
                {
                    "ErrorEquals": ["Lambda.ServiceException", "Lambda.TooManyRequestsException"],
                    "IntervalSeconds": 2,
                    "MaxAttempts": 6,
                    "BackoffRate": 2,
                }
            ],
            "Next": "IsLarge",
        },
        "IsLarge": {
            "Type": "Choice",
            "Choices": [
                {
                    "And": [
                        {"Variable": "$.check.size", "IsPresent": True},
                        {"Variable": "$.check.size", "NumericGreaterThan": 1000},
                    ],
                    "Next": "EachObject",
                },
                {
                    "Not": {"Variable": "$.check.status", "StringEquals": "ready"},
                    "Next": "WaitForData",
                },
            ],
            "Default": "Record",
        },
        "WaitForData": {"Type": "Wait", "SecondsPath": "$.check.delay", "Next": "Check"},
        "EachObject": {
            "Type": "Map",
            "Label": "Objects",
            "MaxConcurrency": 100,
            "ToleratedFailurePercentage": 5,
            "ItemReader": {
                "Resource": "arn:aws:states:::s3:listObjectsV2",
                "Parameters": {"Bucket": "incoming", "Prefix.$": "$.check.prefix"},
            },
            "ItemSelector": {"key.$": "$$.Map.Item.Value.Key", "index.$": "$$.Map.Item.Index"},
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"},
                "StartAt": "Copy",
                "States": {
                    "Copy": {
                        "Type": "Task",
                        "Resource": "arn:aws:states:::aws-sdk:s3:copyObject",
                        "Parameters": {
                            "Bucket": "prepared",
                            "CopySource.$": "States.Format('incoming/{}', $.key)",
                            "Key.$": "$.key",
                        },
                        "ResultSelector": {"tag.$": "$.CopyObjectResult.ETag"},
                        "End": True,
                    }
                },
            },
            "ResultPath": None,
            "Next": "RunJob",
        },
        "RunJob": {
            "Type": "Task",
            "Resource": "arn:aws:states:::batch:submitJob.sync",
            "Parameters": {
                "JobName.$": "States.Format('prepare-{}', States.UUID())",
                "JobQueue": "queue",
                "JobDefinition": "prepare",
                "ContainerOverrides": {
                    "Environment": [{"Name": "PREFIX", "Value.$": "$.check.prefix"}]
                },
            },
            "ResultPath": "$.job",
            "Catch": [
                {"ErrorEquals": ["States.TaskFailed"], "ResultPath": "$.error", "Next": "Failed"}
            ],
            "Next": "Record",
        },
        "Record": {
            "Type": "Task",
            "Resource": "arn:aws:states:::dynamodb:putItem",
            "Parameters": {
                "TableName": "runs",
                "Item": {
                    "run": {"S.$": "$$.Execution.Name"},
                    "size": {"N.$": "States.JsonToString($.check.size)"},
                },
            },
            "Assign": {"run.$": "$$.Execution.Name"},
            "ResultPath": None,
            "Next": "Nested",
        },
        "Nested": {
            "Type": "Task",
            "Resource": "arn:aws:states:::states:startExecution.sync:2",
            "Parameters": {
                "StateMachineArn": "arn:aws:states:us-east-1:123456789012:stateMachine:train",
                "Input": {"run.$": "$run"},
            },
            "OutputPath": "$.Output",
            "Next": "Done",
        },
        "Done": {"Type": "Succeed"},
        "Failed": {"Type": "Fail", "ErrorPath": "$.error.Error", "CausePath": "$.error.Cause"},
    },
}

POLLED: dict[str, Any] = {
    "QueryLanguage": "JSONata",
    "StartAt": "Start",
    "States": {
        "Start": {
            "Type": "Task",
            "Resource": "arn:aws:states:::aws-sdk:sagemaker:createTrainingJob",
            "Arguments": {
                "TrainingJobName": "{% $states.context.Execution.Name %}",
                "RoleArn": _ROLE,
                "AlgorithmSpecification": {"TrainingImage": "image", "TrainingInputMode": "File"},
                "OutputDataConfig": {"S3OutputPath": "s3://bucket/models"},
                "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
            },
            "Next": "Pause",
        },
        "Pause": {"Type": "Wait", "Seconds": 30, "Next": "Describe"},
        "Describe": {
            "Type": "Task",
            "Resource": "arn:aws:states:::aws-sdk:sagemaker:describeTrainingJob",
            "Arguments": {"TrainingJobName": "{% $states.context.Execution.Name %}"},
            "Output": {"status": "{% $states.result.TrainingJobStatus %}"},
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Stop"}],
            "Next": "HasEnded",
        },
        "HasEnded": {
            "Type": "Choice",
            "Choices": [
                {"Condition": "{% $states.input.status = 'Completed' %}", "Next": "Done"},
                {"Condition": "{% $states.input.status = 'Failed' %}", "Next": "Failed"},
            ],
            "Default": "Pause",
        },
        "Stop": {
            "Type": "Task",
            "Resource": "arn:aws:states:::aws-sdk:sagemaker:stopTrainingJob",
            "Arguments": {"TrainingJobName": "{% $states.context.Execution.Name %}"},
            "Next": "Failed",
        },
        "Done": {"Type": "Succeed"},
        "Failed": {"Type": "Fail", "Error": "TrainingFailed"},
    },
}

WORKING = {"jsonata": JSONATA, "jsonpath": JSONPATH, "polled": POLLED}
