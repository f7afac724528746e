"""The simulated services of one account."""

from __future__ import annotations

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import Checked, Service, ServiceError
from orchestration.local.account.quotas import ServiceQuotas
from orchestration.local.batch.service import BatchOperations
from orchestration.local.datasync.service import DataSync
from orchestration.local.ecr.service import Ecr
from orchestration.local.engine.machines.service import StepFunctions
from orchestration.local.events import sources
from orchestration.local.events.schedules import Calendar
from orchestration.local.events.service import EventBridge, Scheduler
from orchestration.local.fsx.service import FileSystems
from orchestration.local.functions.service import Functions
from orchestration.local.iam.service import Iam
from orchestration.local.iam.sessions import Sts
from orchestration.local.s3.service import S3
from orchestration.local.sagemaker.components.scaling import CopyTargets
from orchestration.local.sagemaker.service import SageMaker
from orchestration.local.sagemaker.workloads import Workloads
from orchestration.local.sns.service import Sns
from orchestration.local.ssm.service import Ssm


class Simulation:
    """An account and the services that are simulated here instead of by moto."""

    def __init__(self, account: Account, workloads: Workloads | None = None) -> None:
        self.account = account
        self.calendar = Calendar()
        self.file_systems = FileSystems(account)
        self.sagemaker = SageMaker(
            account,
            self.file_systems,
            workloads or Workloads(),
            lambda package: sources.tell_of_package(account.region, package),
        )
        self.datasync = DataSync(account, self.file_systems.get)
        self.batch = BatchOperations(account)
        self.quotas = ServiceQuotas()
        self.ecr = Ecr(account)
        self.services: dict[str, Service] = {
            "sagemaker": self.sagemaker,
            "fsx": self.file_systems,
            "datasync": self.datasync,
            "ecr": self.ecr,
            "lambda": Functions(account),
            "iam": Iam(),
            "sts": Sts(),
            "s3": S3(),
            "s3control": self.batch,
            "cloudwatch": self.sagemaker.alarms,
            "service-quotas": self.quotas,
            "application-autoscaling": CopyTargets(account, self.sagemaker.operations),
            "events": EventBridge(),
            "logs": Checked("logs", "InvalidParameterException"),
            "scheduler": Scheduler(),
            "sns": Sns(),
            "ssm": Ssm(),
            "stepfunctions": StepFunctions(),
        }

    def tags(self, arn: str) -> dict[str, str]:
        """Return the tags of a resource of the services that are simulated here."""
        parts = arn.split(":", 5)
        service = parts[2] if len(parts) == 6 else ""
        try:
            match service:
                case "fsx":
                    found = self.file_systems.operations["ListTagsForResource"](
                        {"ResourceARN": arn}
                    )
                case "datasync":
                    found = self.datasync.operations["ListTagsForResource"]({"ResourceArn": arn})
                case "s3" if parts[5].startswith("job/"):
                    job = {"AccountId": parts[4], "JobId": parts[5].removeprefix("job/")}
                    found = self.batch.operations["GetJobTagging"](job)
                case "sagemaker":
                    found = self.sagemaker.operations["ListTags"]({"ResourceArn": arn})
                case _:
                    return {}
        except ServiceError:
            return {}  # It does not exist yet.
        return {tag["Key"]: tag["Value"] for tag in found["Tags"]}

    def close(self) -> None:
        """Stop every job, endpoint and child process."""
        self.sagemaker.close()
        self.account.children.close()
