"""Whatever a user writes is refused in a sentence and in less than a second, or taken as it is."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestration import (
    Cluster,
    Pipeline,
    PipelineError,
    S3Channel,
    TrainingJob,
    join,
    parameter,
)
from orchestration.expressions import Function, apply
from orchestration.pipeline.files import lock
from orchestration.pipeline.yaml import load

GOOD = """\
name: p
parameters: {bucket: {}}
workspace: s3://b/p
stages:
  t:
    kind: training_job
    image: 111122223333.dkr.ecr.us-east-1.amazonaws.com/c:1
    channels: {training: s3://d/x}
    cluster: {instance_type: ml.c5.xlarge}
"""
HALF = "\ud83d"
ENDED = "has U+0000 (the end of a text for programs) as character 2; remove it"
HALVED = "has U+D83D (half of a character) as character 1; remove it"
LARGE = "is a number of more than 300 digits; write a smaller one"


def merges(levels: int) -> str:
    lines = ["a0: &a0 {k: v}"]
    for level in range(1, levels):
        below = ", ".join([f"*a{level - 1}"] * 9)
        lines.append(f"a{level}: &a{level} {{<<: [{below}], k{level}: v}}")
    return "\n".join(lines) + "\n"


def aliases(levels: int) -> str:
    lines = ["a0: &a0 [x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines) + "\n"


@pytest.fixture(autouse=True)
def _in_no_time() -> Iterator[None]:
    # Time of this process: others on this machine are not counted. What grows by its levels takes
    # minutes; a collection of this process's garbage, where all tests ran, a second.
    Pipeline.parse(
        {"name": "warm", "workspace": "s3://b/p", "stages": {"s": {"kind": "data_staging",
         "source": "s3://a/b"}}}
    )  # fmt: skip
    before = time.process_time()
    yield
    assert time.process_time() - before < 20


def refused(folder: Path, content: bytes) -> str:
    path = folder / "p.yaml"
    path.write_bytes(content)
    with pytest.raises(PipelineError) as caught:
        Pipeline.load(path)
    message = str(caught.value)
    assert len(message) < 2000
    return message


@pytest.mark.parametrize(
    ("added", "message"),
    [
        (merges(10), "merge keys stand for more than 100000 values; write fewer"),
        (aliases(10), "stands for more than 100000 values; write fewer aliases"),
        ("x: &x {a: *x}\n", "stands for more than 100000 values"),
        ("description: !!int abc\n", "line 10, column 14: expected !!int, got 'abc'"),
        ("description: !!float abc\n", "expected !!float, got 'abc'"),
        ("description: !!bool maybe\n", "expected !!bool, got 'maybe'"),
        ("description: !!null x\n", "expected !!null, got 'x'"),
        ("description: !!map x\n", "expected a mapping after !!map, got a scalar"),
        ("description: !!seq x\n", "expected a sequence after !!seq, got a scalar"),
        ("description: !!str {a: b}\n", "expected a scalar after !!str, got a mapping"),
        ("description: !!timestamp 2020-99-99\n", "could not determine a constructor"),
        ("description: !!binary aGVsbG8=\n", "could not determine a constructor"),
        ("tags: !!set {a, b}\n", "could not determine a constructor"),
        ("tags: !!omap [a: b]\n", "could not determine a constructor"),
        ("description: !mine x\n", "could not determine a constructor"),
        (f"    max_runtime_s: {'9' * 5000}\n", "a number of 5000 digits; the most is 300"),
        (f"    hyperparameters: {{a: {'9' * 4400}}}\n", "a number of 4400 digits"),
        (f"x: {'[' * 5000}{']' * 5000}\n", "more than 200 lists and mappings in each other"),
        (f"x: {'{a: ' * 3000}1{'}' * 3000}\n", "more than 200 lists and mappings"),
        ("x:\n" + "".join(" " * n + "a:\n" for n in range(1, 400)), "more than 200 lists and"),
        ('description: "\\ud83d"\n', f"description: {HALVED}"),
        ('    hyperparameters: {a: "\\ud83d"}\n', f"stages.t.hyperparameters.a: {HALVED}"),
        ('    environment: {"\\ud83d": x}\n', "stages.t.environment.\\ud83d: the key has U+D83D"),
        ('    environment: {a: "x\\0y"}\n', f"stages.t.environment.a: {ENDED}"),
        ('    hyperparameters: {a: "x\\0y"}\n', f"stages.t.hyperparameters.a: {ENDED}"),
        ('tags: {a: "x\\0y"}\n', f"tags.a: {ENDED}"),
        ('    source: {directory: "s\\0c", entry_point: t.py}\n', f"source.directory: {ENDED}"),
        ('    source: {directory: "\\ud83d", entry_point: t.py}\n', HALVED),
        (
            f"    source: {{directory: {'a' * 5000}, entry_point: t.py}}\n",
            "stages.t.source.directory: is a path of 5000 characters; the most is 4096",
        ),
        (
            f"    source: {{directory: {'a/' * 100}{'b' * 300}, entry_point: t.py}}\n",
            "source.directory: holds a name of more than 255 characters",
        ),
        (f"    source: {{archive: {'a' * 5000}.tar.gz, entry_point: t.py}}\n", "is a path of 5007"),
        ("    source: {directory: /, entry_point: t.py}\n", "stages.t.source.directory"),
        ("# " + "x" * 600_000 + "\n", "has more than 524288 bytes; a description has fewer"),
    ],
    ids=range(33),
)
def test_a_file_is_refused_in_a_sentence(tmp_path: Path, added: str, message: str) -> None:
    assert message in refused(tmp_path, GOOD.encode() + added.encode())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOOD.encode("utf-16"), "is not UTF-8"),
        (GOOD.encode() + b"# \xe9\n", "is not UTF-8"),
        (bytes(range(256)) * 50, "is not UTF-8"),
        (b"\x1f\x8b\x08\x00" + GOOD.encode(), "is not UTF-8"),
        (GOOD.encode() + b"\0", "is not YAML: unacceptable character #x0000"),
        (b"", "holds no mapping"),
        (b"42", "holds no mapping"),
    ],
)
def test_what_is_no_pipeline_file_says_so(tmp_path: Path, content: bytes, message: str) -> None:
    assert message in refused(tmp_path, content)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (".", "can't be read: Is a directory"),
        ("/dev/zero", "has more than 524288 bytes"),
        ("a" * 5000, "can't be read: File name too long"),
        ("a\0b", "is not a path: embedded null byte"),
    ],
)
def test_a_path_that_leads_to_no_file_is_refused(path: str, message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        Pipeline.load(path)


def test_locking_refuses_a_long_path_too(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(GOOD + f"    source: {{directory: {'a' * 5000}, entry_point: t.py}}\n")
    with pytest.raises(PipelineError, match="is a path of 5000 characters"):
        lock(path)


def built(**stage: Any) -> Mapping[str, Any]:
    return {
        "name": "p",
        "workspace": "s3://b/p",
        "stages": {
            "t": {
                "kind": "training_job",
                "image": "111122223333.dkr.ecr.us-east-1.amazonaws.com/c:1",
                "channels": {"training": "s3://d/x"},
                "cluster": {"instance_type": "ml.c5.xlarge"},
                **stage,
            }
        },
    }


@pytest.mark.parametrize("number", [10**400, -(10**400), 10**5000], ids=["400", "-400", "5000"])
@pytest.mark.parametrize(
    ("field", "wrap"),
    [
        ("cluster.instance_count", lambda n: {"instance_type": "any", "instance_count": n}),
        ("max_runtime_s", lambda n: n),
        ("hyperparameters.a", lambda n: {"a": n}),
        ("extra_request.RetryStrategy.MaximumRetryAttempts",
         lambda n: {"RetryStrategy": {"MaximumRetryAttempts": n}}),
        ("channels.training", lambda n: {"training": n}),
    ],
)  # fmt: skip
def test_a_number_without_end_is_refused(number: int, field: str, wrap: Any) -> None:
    with pytest.raises(PipelineError) as caught:
        Pipeline.parse(built(**{field.partition(".")[0]: wrap(number)}))
    assert str(caught.value) == f"stages.t.{field}: {LARGE}"


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"parameters": {"n": {"type": "number", "default": 10**400}}}, "parameters.n.default"),
        ({"schedule": {"cron": "", "parameters": {"n": 10**400}}}, "schedule.parameters.n"),
    ],
    ids=["default", "schedule"],
)
def test_so_is_one_of_the_pipeline(data: dict[str, Any], path: str) -> None:
    with pytest.raises(PipelineError, match=f"{path}: {LARGE}"):
        Pipeline.parse({**built(), **data})


def test_objects_are_looked_through_too() -> None:
    train = TrainingJob(
        name="train",
        image="i",
        channels={"training": S3Channel(uri=join(parameter("bucket"), HALF))},
        cluster=Cluster(instance_type="ml.c5.xlarge"),
        environment={"A": "x\0"},
    )
    with pytest.raises(PipelineError) as caught:
        Pipeline(name="p", workspace="s3://b/p", parameters={"bucket": {}}, stages=[train])
    assert f"stages.train.environment.A: {ENDED}" in str(caught.value)
    assert f"stages.train.channels.training.uri.join[1]: {HALVED}" in str(caught.value)


def test_a_merged_mapping_may_be_merged_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    defaults = "x: {y: {base: &b {<<: &c {a: 1}, a: 2}}}\nz: {<<: *b}\n"
    path.write_text(defaults)
    assert load(path)["z"] == {"a": 2}


def test_a_computed_value_is_refused_with_its_place() -> None:
    image = apply(Function.HASH, parameter("image"))
    job = TrainingJob(name="t", image=image, cluster=Cluster(instance_type="ml.m5.xlarge"))
    with pytest.raises(PipelineError) as error:
        Pipeline(name="p", workspace="s3://b/p", parameters={"image": {}}, stages=[job])
    assert str(error.value) == (
        "stages.t.image: is Apply(…), which only renderers compute; write parameter(…), join(…), "
        "first_of(…) or an output of a stage"
    )
