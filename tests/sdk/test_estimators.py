"""V2's estimators against the training jobs made of them: the same request, field by field.

Needs an environment with V2 (see README.md beside this file); skipped elsewhere.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline, PipelineError, TrainingJob
from orchestration.sagemaker_sdk import DIFFERENCES, from_estimator, settings
from tests.sdk import v2
from tests.sdk.capture import JOB, REGION, ROLE, S3, Recorder, generation
from tests.sdk.comparing import CONTEXT, LISTED, WORKSPACE, different
from tests.sdk.options import DISTRIBUTIONS, IMAGE, OPTIONS

# What the SDK warns of is its own affair.
pytestmark = pytest.mark.filterwarnings("ignore")

if generation() != 2:
    pytest.skip("needs the SageMaker Python SDK, V2 (make test-sdk)", allow_module_level=True)

RECORDED = sorted((Path(__file__).parents[1] / "data" / "sdk_requests").glob("*.json"))
compared = itertools.count()


@dataclass
class Sdk:
    """The SDK with one session, which records."""

    names: dict[str, Any]
    recorder: Recorder
    session: Any

    def clear(self) -> None:
        self.recorder.requests.clear()
        self.recorder.uploads.clear()


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Sdk:
    folder = tmp_path_factory.mktemp("code")
    (folder / "src" / "inner").mkdir(parents=True)
    (folder / "src" / "train.py").write_text("print('training')\n")
    (folder / "src" / "inner" / "start.py").write_text("print('inner')\n")
    (folder / "lib" / "deep").mkdir(parents=True)
    (folder / "lib" / "deep" / "module.py").write_text("X = 1\n")
    (folder / "one.py").write_text("Y = 2\n")
    names = v2.names(folder / "src")
    names["DEPENDENCIES"] = [str(folder / "lib"), str(folder / "one.py")]
    recorder = Recorder()
    return Sdk(names, recorder, v2.session(recorder))


def _bases(sdk: Sdk) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    names = sdk.names
    gpus = {"instance_count": 2, "instance_type": "ml.g5.12xlarge"}
    cpus = {"instance_count": 2, "instance_type": "ml.m5.2xlarge"}
    where = {"role": ROLE, "sagemaker_session": sdk.session}
    code = {**where, "entry_point": "train.py", "source_dir": names["SRC"]}
    rl = {
        "toolkit": names["RLToolkit"].COACH,
        "toolkit_version": "0.11.0",
        "framework": names["RLFramework"].MXNET,
        "output_path": "s3://my-bucket/rl",
    }
    hugging = {"transformers_version": "4.49.0", "pytorch_version": "2.5.1", "py_version": "py311"}
    return {
        "pytorch": (
            names["PyTorch"],
            {**code, **gpus, "framework_version": "2.2.0", "py_version": "py310"},
        ),
        "tensorflow": (
            names["TensorFlow"],
            {**code, **gpus, "framework_version": "2.11.0", "py_version": "py39"},
        ),
        "huggingface": (names["HuggingFace"], {**code, **gpus, **hugging}),
        "mxnet": (
            names["MXNet"],
            {**code, **gpus, "framework_version": "1.9.0", "py_version": "py38"},
        ),
        "xgboost": (names["XGBoost"], {**code, **cpus, "framework_version": "1.7-1"}),
        "sklearn": (
            names["SKLearn"],
            {**code, **cpus, "instance_count": 1, "framework_version": "1.2-1"},
        ),
        "chainer": (
            names["Chainer"],
            {**code, **cpus, "framework_version": "5.0.0", "py_version": "py3"},
        ),
        "rl": (names["RLEstimator"], {**code, **cpus, **rl}),
        "script": (names["Estimator"], {**code, **gpus, "image_uri": IMAGE}),
        "image": (names["Estimator"], {**where, **gpus, "image_uri": IMAGE}),
    }


CODELESS = frozenset(["image"])
ABOUT_CODE = frozenset(
    [
        *("dependencies", "a script alone", "a script and dependencies", "a script in a folder"),
        *("code in S3", "log level"),
    ]
)


def _compared(
    sdk: Sdk, base: str, given: dict[str, Any], fit: dict[str, Any]
) -> dict[str, Any] | None:
    """What is left that is not equal; ``None`` where the SDK itself refuses."""
    make, defaults = _bases(sdk)[base]
    arguments = {"inputs": {"training": S3}, **fit}
    sdk.clear()
    try:
        estimator = make(**{**defaults, **given})
    except (ValueError, AttributeError, RuntimeError, TypeError):
        return None
    inputs, experiment = arguments.pop("inputs"), arguments.get("experiment_config")
    refusal: PipelineError | None = None
    job: TrainingJob | None = None
    try:
        job = from_estimator(estimator, inputs, experiment_config=experiment)
    except PipelineError as error:
        refusal = error
    try:
        estimator.fit(inputs, wait=False, job_name=JOB, **arguments)
    except (ValueError, RuntimeError, TypeError):
        return None
    if refusal is not None:
        return {"refused": str(refusal)}
    assert job is not None
    next(compared)
    sent, uploads = sdk.recorder.request, dict(sdk.recorder.uploads)
    left = different(job, sent, uploads)
    again = from_estimator(estimator, inputs, experiment_config=experiment)
    left |= {f"after fit: {k}": v for k, v in different(again, sent, uploads).items()}
    return dict(left)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_sdk_still_sends_what_was_recorded(sdk: Sdk, path: Path) -> None:
    recorded = json.loads(path.read_text())
    sdk.clear()
    _call(recorded["estimator"], sdk)
    assert sdk.recorder.request == recorded["request"]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_estimator_makes_a_job_with_the_same_request(sdk: Sdk, path: Path) -> None:
    recorded = json.loads(path.read_text())
    sdk.clear()
    converted = _call(recorded["estimator"], sdk)
    next(compared)
    assert different(converted, recorded["request"], dict(sdk.recorder.uploads)) == {}


def _call(code: str, sdk: Sdk) -> TrainingJob:
    """Runs a recorded call; the job made of its estimator just before ``fit()``."""
    jobs = []

    def converting(kind: Any) -> Any:
        def fit(self: Any, inputs: Any = None, **given: Any) -> Any:
            experiment = given.get("experiment_config")
            jobs.append(from_estimator(self, inputs, experiment_config=experiment))
            return kind.fit(self, inputs, **given)

        # A class of a user that overrides fit() is refused.
        return type(kind.__name__, (kind,), {"fit": fit, "__module__": kind.__module__})

    fitted = ("PyTorch", "TensorFlow", "MXNet", "HuggingFace", "XGBoost", "Estimator")
    names = sdk.names | {name: converting(sdk.names[name]) for name in fitted}
    before = set(names)
    exec(code, names)  # the recorded call, which is data of this repository
    [case] = set(names) - before - {"__builtins__"}
    names[case](sdk.session)
    [job] = jobs
    return job


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_every_strategy_on_every_framework(sdk: Sdk, name: str) -> None:
    base, given = DISTRIBUTIONS[name]
    left = _compared(sdk, base, given, {})
    assert left is not None, "the SDK refuses it, so it compares nothing"
    assert left == {}


BASE_NAMES = (
    *("pytorch", "tensorflow", "huggingface", "mxnet", "xgboost", "sklearn", "chainer", "rl"),
    *("script", "image"),
)


@pytest.mark.parametrize("base", BASE_NAMES)
def test_every_option_on_every_estimator(sdk: Sdk, base: str) -> None:
    left = {}
    for name, option in OPTIONS.items():
        if not (base in CODELESS and name in ABOUT_CODE):
            given, fit = option(sdk.names)
            left[name] = _compared(sdk, base, given, fit)
    assert {name: found for name, found in left.items() if found} == {}
    assert sum(found is not None for found in left.values()) > 50


def _pairs() -> Iterator[tuple[str, str]]:
    yield from itertools.combinations(OPTIONS, 2)


@pytest.mark.parametrize("base", ["pytorch", "tensorflow", "script", "image"])
@pytest.mark.parametrize("part", range(4))
def test_every_pair_of_options(sdk: Sdk, base: str, part: int) -> None:
    left = {}
    for number, (one, other) in enumerate(_pairs()):
        if number % 4 != part or (base in CODELESS and {one, other} & ABOUT_CODE):
            continue
        (given, fit), (more, further) = OPTIONS[one](sdk.names), OPTIONS[other](sdk.names)
        if not (given.keys() & more.keys() or fit.keys() & further.keys()):
            left[one, other] = _compared(sdk, base, given | more, fit | further)
    # Which the SDK takes, leaving the dependencies out without a word.
    dropped = left.pop(("dependencies", "code in S3"), None)
    assert dropped is None or "estimator.dependencies" in dropped["refused"]
    assert {name: found for name, found in left.items() if found} == {}


def _refused(convert: Callable[[], object]) -> dict[str, str]:
    with pytest.raises(PipelineError) as error:
        convert()
    return {problem.path: problem.message for problem in error.value.problems}


def _made(sdk: Sdk, base: str, **given: Any) -> Any:
    make, defaults = _bases(sdk)[base]
    return make(**{**defaults, **given})


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "git": (
        "pytorch",
        {"git_config": {"repo": "https://example.com/repo.git"}},
        "estimator.git_config",
    ),
    "place for code": ("pytorch", {"code_location": "s3://b/code"}, "estimator.code_location"),
    "checkpoints nowhere": (
        "pytorch",
        {"checkpoint_local_path": "/opt/ml/ckpt"},
        "estimator.checkpoint_local_path",
    ),
    "spot without end": ("image", {"use_spot_instances": True}, "estimator.max_wait"),
    "waiting for nothing": ("image", {"max_wait": 100_000}, "estimator.max_wait"),
    "metric twice": (
        "image",
        {"metric_definitions": [{"Name": "a", "Regex": "(.)"}, {"Name": "a", "Regex": "(..)"}]},
        "estimator.metric_definitions[1]",
    ),
    "code that is no archive": (
        "pytorch",
        {"source_dir": "s3://b/code/"},
        "estimator.source_dir",
    ),
    "no such script": ("pytorch", {"entry_point": "other.py"}, "estimator.source_dir"),
    "model_dir as a hyperparameter": (
        "tensorflow",
        {"hyperparameters": {"model_dir": "/x"}},
        "estimator.hyperparameters.model_dir",
    ),
    "reinforcement learning to nowhere": ("rl", {"output_path": None}, "estimator.output_path"),
    "two strategies": (
        "pytorch",
        {"distribution": {"mpi": {"enabled": True}, "torch_distributed": {"enabled": True}}},
        "estimator.distribution",
    ),
    "a strategy that is not switched on": (
        "pytorch",
        {"distribution": {"mpi": {"processes_per_host": 8}}},
        "estimator.distribution.mpi",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_counterpart_is_named(sdk: Sdk, name: str) -> None:
    base, given, path = REFUSED[name]
    estimator = _made(sdk, base, **given)
    assert path in _refused(lambda: from_estimator(estimator, {"training": S3}))


def test_everything_is_named_at_once(sdk: Sdk) -> None:
    estimator = _made(
        sdk,
        "pytorch",
        git_config={"repo": "https://example.com/repo.git"},
        code_location="s3://b/code",
        max_run=sdk.names["ParameterInteger"]("seconds"),
        environment={"A": sdk.names["ParameterString"]("a")},
    )
    estimator.an_option_of_tomorrow = "on"
    refused = _refused(
        lambda: from_estimator(estimator, {"training": sdk.names["TrainingInput"](S3)})
    )
    assert refused.keys() == {
        "estimator.git_config",
        "estimator.code_location",
        "estimator.max_run",
        "estimator.environment.A",
        "estimator.an_option_of_tomorrow",
    }


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda n: {"data": "file:///data"}, "estimator.inputs['data']"),
        (lambda n: "/data", "estimator.inputs['training']"),
        (lambda n: 3, "estimator.inputs"),
        (
            lambda n: {"data": n["TrainingInput"](n["ParameterString"]("uri"))},
            "estimator.inputs.data.config.DataSource.S3DataSource.S3Uri",
        ),
        (
            lambda n: {"data": n["TrainingInput"](S3, target_attribute_name="label")},
            "estimator.inputs['data'].TargetAttributeName",
        ),
        (
            lambda n: {"data": n["TrainingInput"](S3, model_access_config={"AcceptEula": True})},
            "estimator.inputs['data'].ModelAccessConfig",
        ),
    ],
)
def test_inputs_without_a_counterpart_are_named(
    sdk: Sdk, make: Callable[[dict[str, Any]], Any], path: str
) -> None:
    estimator = _made(sdk, "image")
    assert _refused(lambda: from_estimator(estimator, make(sdk.names))).keys() == {path}


def test_local_mode_has_no_counterpart(sdk: Sdk) -> None:
    estimator = _made(sdk, "image")
    estimator.instance_type = "local_gpu"
    assert "estimator.instance_type" in _refused(lambda: from_estimator(estimator))


def test_estimators_of_amazons_algorithms_are_sent_to_the_generic_one(sdk: Sdk) -> None:
    where = {"role": ROLE, "sagemaker_session": sdk.session}
    kmeans = sdk.names["KMeans"](k=3, instance_count=1, instance_type="ml.m5.xlarge", **where)
    assert "image_uris.retrieve" in _refused(lambda: from_estimator(kmeans))["estimator"]


def test_something_else_is_no_estimator(sdk: Sdk) -> None:
    assert "not an estimator" in _refused(lambda: from_estimator(object()))["estimator"]


def test_an_algorithm_is_sent_with_its_defaults(sdk: Sdk) -> None:
    arn = f"arn:aws:sagemaker:{REGION}:123456789012:algorithm/mine"
    channel = {
        "Name": "training",
        "SupportedContentTypes": ["text/csv"],
        "SupportedInputModes": ["File"],
    }
    described = {
        "TrainingImage": IMAGE,
        "SupportedTrainingInstanceTypes": ["ml.m5.xlarge"],
        "SupportsDistributedTraining": True,
        "TrainingChannels": [channel],
        "SupportedHyperParameters": [
            {"Name": "depth", "Type": "Integer", "DefaultValue": "3", "IsTunable": False},
            {"Name": "rate", "Type": "Continuous", "IsRequired": True, "IsTunable": False},
        ],
    }
    sdk.recorder.answers["DescribeAlgorithm"] = {
        "AlgorithmName": "mine",
        "TrainingSpecification": described,
    }
    sdk.clear()
    estimator = sdk.names["AlgorithmEstimator"](
        algorithm_arn=arn,
        role=ROLE,
        sagemaker_session=sdk.session,
        instance_count=1,
        instance_type="ml.m5.xlarge",
        hyperparameters={"rate": 0.5},
    )
    job = from_estimator(estimator, {"training": S3})
    estimator.fit({"training": S3}, wait=False, job_name=JOB)
    next(compared)
    assert job.algorithm == arn
    assert different(job, sdk.recorder.request, {}) == {}


def test_training_compiler_is_told_as_the_sdk_tells_it(sdk: Sdk) -> None:
    left = _compared(
        sdk,
        "huggingface",
        {
            "transformers_version": "4.21.1",
            "pytorch_version": "1.11.0",
            "py_version": "py38",
            "instance_type": "ml.p3.2xlarge",
            "instance_count": 1,
            "compiler_config": sdk.names["TrainingCompilerConfig"](),
        },
        {},
    )
    assert left == {}


def test_defaults_of_the_sdks_configuration_are_sent_too(sdk: Sdk) -> None:
    recorder = Recorder()
    defaults = {
        "Tags": [{"Key": "team", "Value": "theirs"}, {"Key": "cost", "Value": "1"}],
        "Environment": {"A": "1"},
        "EnableNetworkIsolation": True,
        "VpcConfig": {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]},
        "OutputDataConfig": {"KmsKeyId": "key"},
    }
    estimator = _made(
        sdk,
        "pytorch",
        sagemaker_session=v2.session(recorder, TrainingJob=defaults),
        tags=[{"Key": "team", "Value": "ours"}],
    )
    job = from_estimator(estimator, {"training": S3})
    estimator.fit({"training": S3}, wait=False, job_name=JOB)
    assert different(job, recorder.request, recorder.uploads) == {}


def test_settings_make_the_pipeline_around_a_job(sdk: Sdk) -> None:
    estimator = _made(sdk, "pytorch", distribution={"torch_distributed": {"enabled": True}})
    job = from_estimator(estimator, {"training": S3}, name="train")
    pipeline = Pipeline(name="p", workspace=WORKSPACE, stages=(job,), **settings(estimator))
    assert pipeline.context() == CONTEXT
    assert pipeline.lower().graph.steps


def test_converting_changes_nothing_about_the_estimator(sdk: Sdk) -> None:
    estimator = _made(sdk, "tensorflow", rules=[])
    before = dict(vars(estimator))
    from_estimator(estimator, {"training": S3})
    assert vars(estimator) == before


def test_every_difference_is_listed_and_every_listed_one_is_looked_at() -> None:
    named = [difference.field for difference in DIFFERENCES if difference.sdk != "V3"]
    assert named == list(LISTED)
    assert all(difference.reason for difference in DIFFERENCES)


def test_enough_was_compared(
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    count = next(compared)
    record_testsuite_property("requests compared with V2", count)
    assert count == 0 or count > 1000
