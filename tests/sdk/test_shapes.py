"""Estimators whose attributes have values of a wrong kind: refusals, and no bare traceback.

Needs an environment with V2 (see README.md beside this file); skipped elsewhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration import PipelineError
from orchestration.sagemaker_sdk import from_estimator
from orchestration.sagemaker_sdk.v2.attributes import CONVERTED
from tests.sdk import v2
from tests.sdk.capture import ROLE, S3, Recorder, generation

# What the SDK warns of is its own affair.
pytestmark = pytest.mark.filterwarnings("ignore")

if generation() != 2:
    pytest.skip("needs the SageMaker Python SDK, V2 (make test-sdk)", allow_module_level=True)

WRONG: tuple[Any, ...] = (
    *(3, -2.5, True, "x", b"x", Path("x"), object(), {"a": 1}, {3: "a"}, {"a": {"b": []}}),
    *(["x"], [3], [None], [[]], [{"Key": "a"}], [{"Name": "x", "regex": "y"}], {"x"}, ("x", 3)),
    *({"mpi": True}, {"parameter_server": True}, {"smdistributed": [3]}),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    code = tmp_path_factory.mktemp("code")
    (code / "train.py").write_text("print('training')\n")
    names = v2.names(code)
    session = v2.session(Recorder())

    def made(kind: str, **given: Any) -> Any:
        where = {"role": ROLE, "sagemaker_session": session, "instance_count": 2}
        script = {"entry_point": "train.py", "source_dir": str(code)}
        versions = {
            "PyTorch": {"framework_version": "2.2.0", "py_version": "py310"},
            "TensorFlow": {"framework_version": "2.11.0", "py_version": "py39"},
            "Estimator": {"image_uri": "111122223333.dkr.ecr.us-west-2.amazonaws.com/mine:1"},
        }[kind]
        machine = {"instance_type": "ml.p4d.24xlarge"}
        return names[kind](**{**where, **script, **machine, **versions, **given})

    return made


@pytest.mark.parametrize("kind", ["PyTorch", "TensorFlow", "Estimator"])
@pytest.mark.parametrize("name", sorted(CONVERTED))
def test_a_value_of_a_wrong_kind_is_converted_or_refused(made: Any, kind: str, name: str) -> None:
    estimator = made(kind)
    if name not in vars(estimator):
        return
    for value in WRONG:
        setattr(estimator, name, value)
        try:
            from_estimator(estimator, S3)
        except PipelineError:
            continue


REFUSED: dict[str, tuple[Any, str, str]] = {
    "a tag without its value": (
        {"tags": [{"Key": "a"}]},
        "estimator.tags",
        "expected a list of {Key, Value}, both text, got [{'Key': 'a'}]",
    ),
    "a metric with a key in lower case": (
        {"metric_definitions": [{"Name": "x", "regex": "y"}]},
        "estimator.metric_definitions",
        "expected a list of {Name, Regex}, both text, got [{'Name': 'x', 'regex': 'y'}]",
    ),
    "dependencies in one path": (
        {"dependencies": Path("lib")},
        "estimator.dependencies",
        "expected a list of paths, got PosixPath('lib')",
    ),
    "rules in text": (
        {"rules": "x"},
        "estimator.rules",
        "expected a list of Rule and ProfilerRule, got 'x'",
    ),
    "a hook in a mapping": (
        {"debugger_hook_config": {"S3OutputPath": "s3://b"}},
        "estimator.debugger_hook_config",
        "expected a DebuggerHookConfig, or False for none, got {'S3OutputPath': 's3://b'}",
    ),
    "a board in a mapping": (
        {"tensorboard_output_config": {"S3OutputPath": "s3://b"}},
        "estimator.tensorboard_output_config",
        "expected a TensorBoardOutputConfig, got {'S3OutputPath': 's3://b'}",
    ),
    "a number of arguments": (
        {"container_arguments": 3},
        "estimator.container_arguments",
        "expected a list of text, got 3",
    ),
    "a list of hyperparameters": (
        {"_hyperparameters": ["a"]},
        "estimator.hyperparameters",
        "expected a mapping, got a list",
    ),
    "an environment that is true": (
        {"environment": True},
        "estimator.environment",
        "expected a mapping, got a bool",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_says_what_was_expected(made: Any, case: str) -> None:
    attributes, path, message = REFUSED[case]
    estimator = made("PyTorch", max_run=-1)
    vars(estimator).update(attributes)
    with pytest.raises(PipelineError) as error:
        from_estimator(estimator, S3)
    told = {problem.path: problem.message for problem in error.value.problems}
    assert told.pop("estimator.max_run")
    assert told == {path: message}
    assert vars(estimator).items() >= attributes.items()


def test_an_experiment_is_a_mapping(made: Any) -> None:
    with pytest.raises(PipelineError, match="experiment_config: expected a mapping"):
        from_estimator(made("PyTorch"), S3, experiment_config=["x"])  # type: ignore[arg-type]
