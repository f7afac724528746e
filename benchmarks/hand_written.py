"""The digits pipeline as somebody would write it for Airflow by hand: what `parsing.py` compares.

The same tasks with the same requests and parameters. It does less: nothing is adopted, stopped or
checked.
"""

from airflow.providers.amazon.aws.hooks.s3 import S3Hook
from airflow.providers.amazon.aws.operators.sagemaker import (
    SageMakerEndpointOperator,
    SageMakerProcessingOperator,
    SageMakerTrainingOperator,
)
from airflow.sdk import DAG, Param, get_current_context, task
from airflow.sdk.definitions.param import ParamsDict

RUN = "s3://{{ params.bucket }}/digits/{{ run_id }}"
SOURCE = "s3://{{ params.bucket }}/digits/source"
PARAMETERS = {
    "bucket": "Bucket of the workspace, without s3://",
    "data": "S3 URI with train/ and holdout/, without a slash at its end",
    "training_image": "Registry path of a PyTorch training container",
    "inference_image": "Registry path of a PyTorch inference container",
    "role": "ARN of the role that SageMaker assumes",
}


def tags(stage):
    return [
        {"Key": "team", "Value": "vision"},
        {"Key": "orchestration:pipeline", "Value": "digits"},
        {"Key": "orchestration:stage", "Value": stage},
        {"Key": "orchestration:run", "Value": "{{ run_id }}"},
    ]


TRAINING = {
    "TrainingJobName": "digits-train-{{ run_id }}",
    "RoleArn": "{{ params.role }}",
    "AlgorithmSpecification": {
        "TrainingImage": "{{ params.training_image }}",
        "TrainingInputMode": "File",
        "MetricDefinitions": [
            {"Name": "train:loss", "Regex": "train:loss=([0-9.]+)"},
            {"Name": "validation:accuracy", "Regex": "validation:accuracy=([0-9.]+)"},
        ],
    },
    "HyperParameters": {
        "epochs": "4",
        "batch_size": "32",
        "learning_rate": "0.02",
        "sagemaker_program": '"train.py"',
        "sagemaker_submit_directory": f'"{SOURCE}/train/sourcedir.tar.gz"',
        "sagemaker_container_log_level": "20",
        "sagemaker_job_name": '"digits-train-{{ run_id }}"',
        "sagemaker_torch_distributed_enabled": "true",
        "sagemaker_instance_type": '"{{ params.instance_type }}"',
        "sagemaker_mpi_num_of_processes_per_host": "2",
    },
    "InputDataConfig": [
        {
            "ChannelName": "training",
            "DataSource": {
                "S3DataSource": {
                    "S3DataType": "S3Prefix",
                    "S3Uri": f"{RUN}/staging/train",
                    "S3DataDistributionType": "FullyReplicated",
                }
            },
        }
    ],
    "OutputDataConfig": {"S3OutputPath": f"{RUN}/train/output"},
    "ResourceConfig": {
        "InstanceType": "{{ params.instance_type }}",
        "InstanceCount": 2,
        "VolumeSizeInGB": 30,
    },
    "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
    "Tags": tags("train"),
    "CheckpointConfig": {"S3Uri": f"{RUN}/train/checkpoints", "LocalPath": "/opt/ml/checkpoints"},
}


def input_of(name, uri, kind="S3Prefix"):
    return {
        "InputName": name,
        "S3Input": {
            "S3Uri": uri,
            "LocalPath": f"/opt/ml/processing/input/{name}",
            "S3DataType": kind,
            "S3InputMode": "File",
        },
    }


def evaluation(checkpoint):
    name = checkpoint.rstrip("/").rpartition("/")[2]
    return {
        "ProcessingJobName": f"digits-evaluate-{name}-{{{{ run_id }}}}",
        "RoleArn": "{{ params.role }}",
        "AppSpecification": {
            "ImageUri": "{{ params.training_image }}",
            "ContainerEntrypoint": ["python3", "/opt/ml/processing/input/code/evaluate.py"],
        },
        "ProcessingInputs": [
            input_of("checkpoint", checkpoint),
            input_of("data", f"{RUN}/staging/holdout"),
            input_of("code", f"{SOURCE}/evaluate/evaluate.py"),
        ],
        "ProcessingOutputConfig": {
            "Outputs": [
                {
                    "OutputName": "result",
                    "S3Output": {
                        "S3Uri": f"{RUN}/evaluate/{name}",
                        "LocalPath": "/opt/ml/processing/output",
                        "S3UploadMode": "EndOfJob",
                    },
                }
            ]
        },
        "ProcessingResources": {
            "ClusterConfig": {
                "InstanceCount": 1,
                "InstanceType": "{{ params.instance_type }}",
                "VolumeSizeInGB": 30,
            }
        },
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        "Tags": tags("evaluate"),
    }


DEPLOYMENT = {
    "Model": {
        "ModelName": "digits-deploy-{{ run_id }}",
        "ExecutionRoleArn": "{{ params.role }}",
        "PrimaryContainer": {
            "Image": "{{ params.inference_image }}",
            "ModelDataUrl": "{{ ti.xcom_pull('evaluate.gate') }}/model.tar.gz",
        },
        "Tags": tags("deploy"),
    },
    "EndpointConfig": {
        "EndpointConfigName": "digits-deploy-{{ run_id }}",
        "ProductionVariants": [
            {
                "VariantName": "all",
                "ModelName": "digits-deploy-{{ run_id }}",
                "InstanceType": "{{ params.instance_type }}",
                "InitialInstanceCount": 1,
            }
        ],
        "Tags": tags("deploy"),
    },
    "Endpoint": {
        "EndpointName": "digits-deploy",
        "EndpointConfigName": "digits-deploy-{{ run_id }}",
        "Tags": tags("deploy"),
    },
}


@task
def inputs():
    return dict(get_current_context()["params"])


@task
def staging():
    context = get_current_context()
    bucket, _, prefix = context["params"]["data"].removeprefix("s3://").partition("/")
    hook = S3Hook()
    for key in hook.list_keys(bucket, prefix=prefix):
        target = f"digits/{context['run_id']}/staging/{key.removeprefix(prefix)}"
        hook.copy_object(key, target, bucket, context["params"]["bucket"])


@task(task_id="evaluate.list")
def checkpoints():
    context = get_current_context()
    prefix = f"digits/{context['run_id']}/train/checkpoints/"
    keys = S3Hook().list_prefixes(context["params"]["bucket"], prefix=prefix, delimiter="/")
    return [evaluation(f"s3://{context['params']['bucket']}/{key}") for key in keys]


@task(task_id="evaluate.gate")
def gate(_):
    context = get_current_context()
    prefix = f"digits/{context['run_id']}/evaluate/"
    hook, bucket = S3Hook(), context["params"]["bucket"]
    best = max(hook.list_keys(bucket, prefix=prefix), key=lambda key: hook.read_key(key, bucket))
    return f"s3://{bucket}/{best}"


@task
def outputs():
    return {"best": get_current_context()["ti"].xcom_pull(task_ids="evaluate.gate")}


def build(dag_id="digits_by_hand"):
    kept = {"deferrable": True, "check_interval": 30, "max_attempts": 10_000}
    with DAG(
        dag_id,
        description="Trains a digits classifier on two hosts and deploys the best checkpoint.",
        schedule=None,
        catchup=False,
        max_active_runs=1,
        default_args={"owner": "vision", "retries": 2},
    ) as dag:
        train = SageMakerTrainingOperator(task_id="train", config=TRAINING, **kept)
        listed = checkpoints()
        each = SageMakerProcessingOperator.partial(
            task_id="evaluate.each", max_active_tis_per_dagrun=2, **kept
        ).expand(config=listed)
        deploy = SageMakerEndpointOperator(task_id="deploy", config=DEPLOYMENT, deferrable=True)
        inputs() >> staging() >> train >> listed
        gate(each.output) >> deploy >> outputs()
    texts = {name: Param(type="string", description=text) for name, text in PARAMETERS.items()}
    dag.params = ParamsDict(texts | {"instance_type": Param("ml.c5.xlarge", type="string")})
    return dag


digits_by_hand = build()
