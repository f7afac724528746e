"""The toolkits of training images are looked for before a run starts."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.errors import LocalError
from orchestration.local.run.toolkits_needed import check_toolkits
from orchestration.local.sagemaker.hosts.toolkits import MXNET, PYTORCH, TENSORFLOW
from tests.pipeline.building import job, pipeline

ECR = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
SCRIPT = {"uri": "s3://bucket/code.tar.gz", "entry_point": "train.py"}


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for toolkit in (MXNET, PYTORCH, TENSORFLOW):
        monkeypatch.setenv(toolkit.python, "")


def check(*stages: Any) -> None:
    made = pipeline(*stages)
    check_toolkits(made, made.lower(), {})


def test_every_stage_whose_toolkit_is_missing_is_named() -> None:
    mxnet = f"{ECR}/mxnet-training:1.9.0-cpu-py38"
    with pytest.raises(LocalError) as error:
        check(*(job(name, image=mxnet, source=SCRIPT) for name in ("first", "second")))
    assert str(error.value).startswith("stage first, second: the embedded AWS runs MXNet images")
    assert MXNET.setup in str(error.value)


def test_stages_that_start_no_toolkit_here_need_none() -> None:
    image = f"{ECR}/mxnet-training:1.9.0-cpu-py38"
    check(
        job("own", image=image),
        job("other", image=image, source=SCRIPT, local={"command": ["true"]}),
        job(
            "maybe",
            image=image,
            source=SCRIPT,
            when={"greater": [{"ref": "own.billable_time_s"}, 9]},
        ),
    )


def test_a_python_that_is_named_is_one_that_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MXNET.python, "/nowhere/python")
    with pytest.raises(LocalError, match=f"{MXNET.python} is '/nowhere/python', which is not"):
        check(job("train", image=f"{ECR}/mxnet-training:1.9.0-cpu-py38", source=SCRIPT))
