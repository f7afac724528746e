"""Roles that requests hand on: there, and assumed by the service that gets them."""

from __future__ import annotations

from orchestration.local import EmbeddedAws
from tests.preflight.conftest import Examine, pipeline, role

UNTRUSTED = "arn:aws:iam::123456789012:role/untrusted"


def test_a_role_that_sagemaker_may_assume_is_no_finding(found: Examine) -> None:
    assert found(pipeline(), "roles") == []


def test_a_missing_role_fails_the_run(found: Examine) -> None:
    arn = "arn:aws:iam::123456789012:role/missing"
    [finding] = found(pipeline(), "roles", role=arn)
    assert (finding.severity, finding.where) == ("fails", "parameters.role")
    assert finding.what == f"role {arn} does not exist"


def test_a_role_under_another_path_is_another_role(found: Examine) -> None:
    [finding] = found(pipeline(), "roles", role="arn:aws:iam::123456789012:role/team/jobs")
    assert "does not exist; there is arn:aws:iam::123456789012:role/jobs" in finding.what


def test_a_role_that_trusts_another_service_fails_the_run(aws: EmbeddedAws, found: Examine) -> None:
    role(aws, UNTRUSTED, service="ec2.amazonaws.com")
    [finding] = found(pipeline(), "roles", role=UNTRUSTED)
    assert finding.severity == "fails"
    assert finding.what == f"role {UNTRUSTED} does not trust sagemaker.amazonaws.com"


def test_a_role_of_another_account_fails_the_run(found: Examine) -> None:
    arn = "arn:aws:iam::111122223333:role/jobs"
    [finding] = found(pipeline(), "roles", role=arn)
    assert finding.what == f"role {arn} is not in account 123456789012"
