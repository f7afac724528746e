"""What an account shows of itself, while others change it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from moto import mock_aws
from moto.s3.models import s3_backends

from orchestration.local.account.account import Account
from orchestration.local.account.clock import Clock
from orchestration.local.account.protocol import ACCOUNT_ID
from orchestration.local.account.roles import provide
from orchestration.local.server.simulation import Simulation
from orchestration.local.server.snapshot import snapshot
from tests.local.conftest import install_for_a_test
from tests.meanwhile import meanwhile

ROLE = f"arn:aws:iam::{ACCOUNT_ID}:role/pipeline"
LOCATION = {"S3BucketArn": "arn:aws:s3:::bucket", "S3Config": {"BucketAccessRoleArn": ROLE}}


@pytest.fixture
def simulation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulation]:
    with mock_aws():
        install_for_a_test(monkeypatch)
        s3_backends[ACCOUNT_ID]["aws"].create_bucket("bucket", "us-east-1")
        provide(ROLE)
        simulation = Simulation(Account("us-east-1", Clock(0.001), tmp_path, {}))
        yield simulation
        simulation.close()


def locations(simulation: Simulation, number: int) -> None:
    operations = simulation.datasync.operations
    made = operations["CreateLocationS3"](LOCATION)["LocationArn"]
    if number % 2:
        operations["DeleteLocation"]({"LocationArn": made})


def objects(_: Simulation, number: int) -> None:
    storage = s3_backends[ACCOUNT_ID]["aws"]
    storage.put_object("bucket", f"key-{number % 300}", b"x")
    storage.delete_object("bucket", f"key-{number * 7 % 300}")


def roles(_: Simulation, number: int) -> None:
    provide(f"{ROLE}-{number}")


@pytest.mark.parametrize(
    ("change", "shown"),
    [(locations, lambda each: each.datasync.state()), (objects, snapshot), (roles, snapshot)],
)
def test_an_account_is_shown_while_others_change_it(
    simulation: Simulation,
    change: Callable[[Simulation, int], None],
    shown: Callable[[Simulation], object],
) -> None:
    for number in range(200):
        change(simulation, number)
    meanwhile(lambda number: change(simulation, 200 + number), lambda: shown(simulation), 200)
