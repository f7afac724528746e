"""IAM: moto answers, and takes the ARNs of all resources that have a region."""

from __future__ import annotations

from orchestration.local.account.protocol import Request, Service

_JOBS = "job/"


class Iam(Service):
    """IAM, whose checks of policies are those of moto, but for the jobs of S3 Batch Operations."""

    name = "iam"

    def __init__(self) -> None:
        super().__init__({})

    def handles(self, request: Request) -> bool:
        """Return False: moto answers every call."""
        return False

    def check(self, request: Request) -> None:
        """Let policies name jobs; no call is refused here.

        moto 5.2.5 refuses `arn:aws:s3:us-east-1:111122223333:job/*` (of S3's resources it knows
        only access points to have a region), and `test_the_role_of_a_copy_may_name_its_jobs` fails.
        """
        from moto.iam import policy_validation

        rules = policy_validation.SERVICE_TYPE_REGION_INFORMATION_ERROR_ASSOCIATIONS
        beginnings = rules["s3"]["valid_starting_values"]
        if _JOBS not in beginnings:
            beginnings.append(_JOBS)
