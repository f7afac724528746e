"""`run.yaml` gives a run on this machine its pipeline, parameters and uploads."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration.cli import run_file, values
from orchestration.cli.run_file import RunFileError
from tests.cli.conftest import Command

WRITTEN = """\
pipeline: copying.yaml
parameters: {bucket: workspace, data: s3://incoming/set, limit: 4}
uploads:
  data/**/*.txt: s3://incoming/set/
"""


def test_a_run_takes_what_is_written_beside_the_pipeline(
    orchestrate: Command, staging: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (staging.parent / "run.yaml").write_text(WRITTEN)
    monkeypatch.chdir(data)
    said = orchestrate("run", staging, "--json", "-p", "limit=5", "--time-scale", "0.005")
    assert (said.status, said.document["state"]) == (0, "succeeded")
    assert said.document["outputs"]["staging"]["object_count"] == 2
    assert "parameters and uploads: run.yaml, and the command line" in said.err


def test_it_names_the_pipeline_of_a_folder(
    orchestrate: Command, staging: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(staging.parent)
    said = orchestrate("run")
    assert said.status == 2
    assert "write it into run.yaml" in said.err
    assert "no run of this pipeline was kept" in orchestrate("logs", "staging").err
    (staging.parent / "other.yaml").write_text(staging.read_text())
    assert "write it into run.yaml" in orchestrate("logs", "staging").err
    (staging.parent / "run.yaml").write_text(WRITTEN.replace("workspace", "elsewhere"))
    said = orchestrate("run", "--time-scale", "0.005", "--json")
    assert (said.status, said.document["pipeline"]) == (0, "copying")
    assert said.document["outputs"]["staging"]["location"].startswith("s3://elsewhere/")


def test_a_run_in_an_account_does_not_read_it(orchestrate: Command, staging: Path) -> None:
    (staging.parent / "run.yaml").write_text("parameters: {bucket: workspace}\n")
    said = orchestrate("run", staging, "--aws")
    assert said.status == 2
    assert "give it as -p bucket=VALUE" in said.err


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("piplines: x", ["piplines: unknown field; did you mean 'pipeline'?"]),
        ("pipeline: 3", ["pipeline: expected the path of a pipeline's file"]),
        ("parameters: [a]", ["parameters: expected a mapping from names to values"]),
        ("uploads: [a]", ["uploads: expected a mapping from files to S3 URIs"]),
        ("uploads: {data: 's3://'}", ["uploads.data: expected s3://bucket/key, got 's3://'"]),
        ("uploads: {data: bucket}", ["uploads.data: expected s3://bucket/key, got 'bucket'"]),
        (
            "uploads: {none/*.csv: s3://a/b, data: s3://a/c, data/: s3://a/c}",
            ["there is no file or folder", "both go to s3://a/c"],
        ),
    ],
)
def test_mistakes_in_it_are_told_all_at_once(
    text: str, problems: list[str], data: Path, tmp_path: Path
) -> None:
    (tmp_path / "run.yaml").write_text(text)
    with pytest.raises(RunFileError) as caught:
        run_file.load(tmp_path / "run.yaml")
    assert len(caught.value.problems) == len(problems)
    assert str(caught.value).startswith("run.yaml")
    assert all(problem in str(caught.value) for problem in problems)


def test_parameters_that_do_not_fit_the_pipeline_are_errors(
    orchestrate: Command, staging: Path
) -> None:
    wrong = "{bukket: a, limit: many, strict: 1, data: s3://incoming/set}"
    (staging.parent / "run.yaml").write_text(f"parameters: {wrong}\n")
    said = orchestrate("run", staging)
    assert said.status == 1
    assert "parameters.bukket: unknown parameter; did you mean 'bucket'?" in said.err
    assert "parameters.limit: expected a number, got 'many'" in said.err
    assert "parameters.strict: expected a boolean, got 1" in said.err


def test_a_pattern_uploads_what_matches(data: Path) -> None:
    sent = values.uploads([f"{data}/**/*.txt=s3://bucket/set/", f"{data}=s3://bucket/whole"])
    assert sent == {
        "s3://bucket/set/b.txt": data / "b.txt",
        "s3://bucket/set/train/a.txt": data / "train" / "a.txt",
        "s3://bucket/whole": data,
    }
