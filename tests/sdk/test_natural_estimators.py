"""Estimators as people write them: equal requests, or refusals in the estimator's own words.

Needs an environment with V2 (see README.md beside this file); skipped elsewhere.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from orchestration import Pause, Pipeline, PipelineError
from orchestration.sagemaker_sdk import from_estimator, pipeline_from_estimator
from tests import guides
from tests.sdk.capture import ROLE, S3, generation
from tests.sdk.natural import Sdk, refusals

# What the SDK warns of is its own affair.
pytestmark = pytest.mark.filterwarnings("ignore")

if generation() != 2:
    pytest.skip("needs the SageMaker Python SDK, V2 (make test-sdk)", allow_module_level=True)

FOLDER = {
    "file_system_id": "fs-0123456789abcdef0",
    "file_system_type": "FSxLustre",
    "file_system_access_mode": "ro",
}
NETWORK = {"subnets": ["subnet-1"], "security_group_ids": ["sg-1"]}


@pytest.fixture
def sdk(tmp_path: Path) -> Sdk:
    return Sdk(tmp_path)


@pytest.mark.parametrize("path", ["/fsx/year=2024", "/fsx/a b", "/fsx/a+b", "/fsx/data/"])
def test_directories_of_a_file_system_have_any_letters(sdk: Sdk, path: str) -> None:
    inputs = sdk.names["FileSystemInput"](
        directory_path=path, content_type="application/x-parquet", **FOLDER
    )
    assert sdk.left(sdk.made(**NETWORK), {"training": inputs}) == {}


def test_a_link_to_a_folder_inside_is_followed(sdk: Sdk) -> None:
    (sdk.code / "inner").mkdir()
    (sdk.code / "inner" / "module.py").write_text("X = 1\n")
    (sdk.code / "alias").symlink_to(sdk.code / "inner")
    assert sdk.left(sdk.made(), S3) == {}


def test_a_link_out_of_the_folder_is_sent_where_it_is_named(sdk: Sdk, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "module.py").write_text("X = 1\n")
    (sdk.code / "shared").symlink_to(tmp_path / "shared")
    assert "include: [shared]" in refusals(sdk.made())["estimator.source_dir"]
    assert sdk.left(sdk.made(), S3, include=["shared"]) == {}


def test_tags_fill_what_aws_leaves_beside_ours(sdk: Sdk) -> None:
    tags = [{"Key": f"k{number}", "Value": "v"} for number in range(48)]
    assert sdk.left(sdk.made(tags=tags[:47]), S3) == {}
    assert refusals(sdk.made(tags=tags)) == {"estimator.tags": "has 48 entries; the most is 47"}


@pytest.mark.parametrize("kind", ["pytorchddp", "mpi", "torch_distributed"])
def test_a_strategy_is_enabled_by_text(sdk: Sdk, kind: str) -> None:
    assert sdk.left(sdk.made(distribution={kind: {"enabled": "true"}}), S3) == {}


def test_text_that_means_false_is_refused_with_what_the_sdk_makes_of_it(sdk: Sdk) -> None:
    refused = refusals(sdk.made(distribution={"mpi": {"enabled": "false"}}))
    assert "takes any text for true" in refused["estimator.distribution.mpi.enabled"]


def test_smddp_beside_torchrun_is_told_which_one_starts(sdk: Sdk) -> None:
    both = {"smdistributed": {"dataparallel": {"enabled": True}}}
    refused = refusals(sdk.made(distribution=both | {"torch_distributed": {"enabled": True}}))
    assert "container starts torchrun" in refused["estimator.distribution"]


def test_the_number_of_processes_is_given_as_text(sdk: Sdk) -> None:
    mpi = {"enabled": True, "processes_per_host": "8"}
    assert sdk.left(sdk.made(distribution={"mpi": mpi}), S3) == {}
    refused = refusals(sdk.made(distribution={"mpi": {**mpi, "processes_per_host": "many"}}))
    assert list(refused) == ["estimator.distribution.mpi.processes_per_host"]


def test_the_number_of_processes_is_given_as_a_float(sdk: Sdk) -> None:
    mpi = {"enabled": True, "processes_per_host": 8.0}
    assert sdk.left(sdk.made(distribution={"mpi": mpi})) == {}


def test_an_option_that_is_none_is_named(sdk: Sdk) -> None:
    mpi = {"enabled": True, "custom_mpi_options": None}
    refused = refusals(sdk.made(distribution={"mpi": mpi}))
    assert refused == {"estimator.distribution.mpi.custom_mpi_options": "is None; remove it"}


def test_what_the_sdk_itself_refuses_of_a_distribution_is_told_once(sdk: Sdk) -> None:
    ddp = {"pytorchddp": {"enabled": True}}
    refused = refusals(sdk.made(instance_type="ml.p5.48xlarge", distribution=ddp))
    assert list(refused) == ["estimator.distribution"]
    assert "do not support p5" in refused["estimator.distribution"]


@pytest.mark.parametrize(
    ("uri", "isolated"),
    [("S3://my-bucket/x.tar.gz", False), ("s3://my-bucket/x.tar.gz", True)],
)
def test_an_archive_in_s3_is_used_as_it_is_named(sdk: Sdk, uri: str, isolated: bool) -> None:
    given = {"source_dir": uri, "enable_network_isolation": isolated}
    assert sdk.left(sdk.made(**given)) == {}


def test_groups_go_without_an_instance_type(sdk: Sdk) -> None:
    groups = [sdk.names["InstanceGroup"]("a", "ml.c5.xlarge", 1)]
    assert list(refusals(sdk.made(instance_groups=groups))) == ["estimator.instance_groups"]
    estimator = sdk.made()
    estimator.instance_type = None
    assert list(refusals(estimator)) == ["estimator.instance_type"]


def test_two_inputs_of_one_name_are_refused(sdk: Sdk) -> None:
    record = sdk.names["RecordSet"]
    inputs = [record(S3, 10, 2, channel="train"), record(f"{S3}/b", 10, 2, channel="train")]
    assert list(refusals(sdk.made(), inputs)) == ["estimator.inputs['train']"]


def test_pipeline_variables_hide_nothing_else(sdk: Sdk) -> None:
    estimator = sdk.made(
        max_run=sdk.names["ParameterInteger"]("seconds"),
        hyperparameters={"lr": sdk.names["ParameterString"]("lr")},
        volume_size=0,
        environment={"A": 1},
    )
    assert refusals(estimator, {"training": "data/"}).keys() == {
        *("estimator.max_run", "estimator.hyperparameters.lr", "estimator.volume_size"),
        *("estimator.environment.A", "estimator.inputs['training']"),
    }


def test_local_mode_hides_nothing_else(sdk: Sdk) -> None:
    estimator = sdk.made(volume_size=0)
    estimator.instance_type = "local_gpu"
    estimator.output_path = "file:///out"
    assert refusals(estimator, {"training": "file:///data"}).keys() == {
        *("estimator.instance_type", "estimator.volume_size", "estimator.output_path"),
        "estimator.inputs['training']",
    }


def test_a_reserved_hyperparameter_is_named(sdk: Sdk) -> None:
    refused = refusals(sdk.made(hyperparameters={"sagemaker_program": "other.py"}))
    assert "'other.py'" in refused["estimator.hyperparameters.sagemaker_program"]


def test_numbers_of_numpy_are_those_of_python(sdk: Sdk) -> None:
    numpy = pytest.importorskip("numpy")
    given = {"epochs": numpy.int64(3), "rate": numpy.float32(0.5), "flag": numpy.bool_(True)}
    job = from_estimator(sdk.made(hyperparameters=given), S3)
    assert job.hyperparameters == {"epochs": 3, "rate": 0.5, "flag": True}


def test_a_hyperparameter_without_a_form_in_json_is_named(sdk: Sdk) -> None:
    given = {"epochs": 3, "when": {1, 2}}
    assert refusals(sdk.made(hyperparameters=given)).keys() == {"estimator.hyperparameters.when"}


def test_code_is_in_a_path(sdk: Sdk) -> None:
    job = from_estimator(sdk.made(source_dir=sdk.code), S3)
    assert job == from_estimator(sdk.made(source_dir=str(sdk.code)), S3)


def test_mistakes_are_told_at_once_by_the_estimators_own_names(sdk: Sdk) -> None:
    estimator = sdk.made(
        max_run=-1,
        volume_size=0,
        max_retry_attempts=99,
        instance_count=0,
        code_location="s3://b/c",
        checkpoint_s3_uri="s3://b/d",
        checkpoint_local_path=3,
        container_log_level="loud",
        input_mode="Bogus",
        subnets=["subnet-1"],
        security_group_ids=[3],
        environment={"A": 1},
    )
    refused = refusals(estimator)
    assert refused.keys() == {
        f"estimator.{name}"
        for name in (
            *("max_run", "volume_size", "max_retry_attempts", "instance_count", "code_location"),
            *("checkpoint_local_path", "container_log_level", "input_mode", "environment.A"),
            "security_group_ids[0]",
        )
    }
    assert not [text for text in refused.values() if "Input should" in text]


def test_conversions_are_equal_and_leave_no_folder(sdk: Sdk, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "module.py").write_text("X = 1\n")
    given = {"dependencies": [str(tmp_path / "lib")]}
    first = from_estimator(sdk.made(**given), S3)
    before = _folders()
    assert from_estimator(sdk.made(**given), S3) == first
    assert _folders() == before


def _folders() -> set[Path]:
    """Return the folders of code in the place for temporary files."""
    return set(Path(tempfile.gettempdir()).glob("orchestration-code-*/*"))


def test_the_guide_s_way_to_yaml_keeps_the_job(
    sdk: Sdk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    guide = Path(__file__).parents[2] / "docs" / "sagemaker_sdk.md"
    [text] = guides.shown(guide, "py")
    names = {"estimator": sdk.made(hyperparameters={"lr": 1e-4, "epochs": "3", "warm": True})}
    exec(compile(text, "sagemaker_sdk.md", "exec"), names)
    assert Pipeline.load("mine.yaml") == names["pipeline"]
    assert "directory: src}" in Path("mine.yaml").read_text("utf-8")


def test_a_pipeline_knows_what_the_estimator_knows(sdk: Sdk) -> None:
    estimator = sdk.made()
    made = pipeline_from_estimator(
        estimator, S3, name="mine", workspace="s3://b/mine", conversion={"include": []}
    )
    job = from_estimator(estimator, S3)
    assert (made.stages, made.region, made.role) == ((job,), "us-west-2", ROLE)
    assert made.lower().region == "us-west-2"
    elsewhere = pipeline_from_estimator(
        estimator, S3, name="mine", workspace="s3://b/mine", region="eu-west-1"
    )
    assert elsewhere.region == "eu-west-1"


def test_mistakes_of_the_estimator_and_of_the_pipeline_are_told_together(sdk: Sdk) -> None:
    pause = Pause(name="pause", duration_s=60, after=("trian",))
    with pytest.raises(PipelineError) as error:
        pipeline_from_estimator(
            sdk.made(max_run=-1), S3, name="Mine", workspace="bucket", stages=[pause]
        )
    assert [problem.path for problem in error.value.problems] == [
        *("estimator.max_run", "name", "workspace", "stages.pause.after"),
    ]


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"enabled": True, "custom_mpi_option": "x"}, ".custom_mpi_option"),
        ({"enabled": True, "custom_mpi_options": 5}, ".custom_mpi_options"),
        ({"enabled": "yes"}, ".enabled"),
        ({}, ""),
    ],
)
def test_mistakes_in_pytorchddp_are_told_under_that_name(
    sdk: Sdk, options: dict[str, Any], place: str
) -> None:
    refused = refusals(sdk.made(distribution={"pytorchddp": options}))
    path = "estimator.distribution.pytorchddp (smdistributed.dataparallel)"
    assert list(refused) == [path + place]
