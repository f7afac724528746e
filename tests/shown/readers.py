"""A reader of a page: a folder, an account of an embedded AWS, and a terminal."""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import boto3
from botocore import xform_name
from typer.main import get_command
from typer.testing import CliRunner

from orchestration.cli.app import app
from orchestration.local import EmbeddedAws
from tests.shown.pages import ShownFile

ROOT = Path(__file__).parents[2]
BUCKETS = ("my-bucket", "my-data", "incoming", "elsewhere", "my-airflow")
FOLDERS = (("train", "train.py"), ("evaluate", "evaluate.py"), ("src", "train.py"))
"""The code of the pages' pipelines."""
ROLE = "arn:aws:iam::123456789012:role/SageMakerExecution"


class NotRun(Exception):
    """Nothing here runs such a command."""


@dataclass
class Reader:
    """Somebody who does what a page says, in a folder, and answers each question with yes."""

    home: Path
    aws: EmbeddedAws
    shared: Mapping[str, ShownFile] = field(default_factory=dict)
    """Files that other pages show, and that this one only names."""

    def __post_init__(self) -> None:
        self.folder = self.home
        for folder, script in FOLDERS:
            (self.home / folder).mkdir(exist_ok=True)
            (self.home / folder / script).touch()

    def save(self, file: ShownFile) -> None:
        """Write a file into the folder."""
        path = self.folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, "utf-8")

    def perform(self, line: str) -> tuple[int, str]:
        """Run a line; return the status of its last command and all that was printed."""
        printed = ""
        status = 0
        for command in line.split(" && "):
            status, text = self._perform(shlex.split(os.path.expandvars(command)))
            printed += text
            if status:
                break
        return status, printed

    def _perform(self, words: list[str]) -> tuple[int, str]:
        if "|" in words or any(word.startswith("$(") for word in words):
            raise NotRun("needs a shell")
        programs: dict[str, Callable[[list[str]], tuple[int, str]]] = {
            ".": self._activate,
            "aws": self._aws,
            "cd": self._cd,
            "change": self._change,
            "cp": self._copy,
            "export": self._export,
            "make": self._make,
            "quota": self._quota,
            "orchestrate": self._orchestrate,
            "python": self._python,
        }
        program, *arguments = words
        if program not in programs:
            raise NotRun(f"no program {program}")
        self._take(arguments)
        return programs[program](arguments)

    def _take(self, words: list[str]) -> None:
        """Fetch what a command names from the repository or from the page that shows it."""
        for word in words:
            top = word.partition("/")[0]
            if top in ("dags", "examples", "statemachines") and not (self.folder / top).exists():
                for each in ("dags", "examples", "statemachines"):
                    shutil.copytree(ROOT / each, self.folder / each)
            if word in self.shared and not (self.folder / word).exists():
                self.save(self.shared[word])

    @cached_property
    def environment(self) -> dict[str, str]:
        """The environment of a reader whose account is the embedded one."""
        return {**self.aws.environment(), "PATH": _with_scripts(os.environ["PATH"])}

    def _activate(self, words: list[str]) -> tuple[int, str]:
        """Do nothing: the reader's programs are those of an environment already."""
        assert words == [".venv/bin/activate"]
        return 0, ""

    def _cd(self, words: list[str]) -> tuple[int, str]:
        self.folder /= words[0]
        os.chdir(self.folder)
        return 0, ""

    def _change(self, words: list[str]) -> tuple[int, str]:
        """Replace a text in a file: what another version of a pipeline has."""
        name, old, new = (word.replace("\\n", "\n") for word in words)
        text = (self.folder / name).read_text("utf-8")
        assert old in text, (name, old)
        (self.folder / name).write_text(text.replace(old, new), "utf-8")
        return 0, ""

    def _quota(self, words: list[str]) -> tuple[int, str]:
        self.aws.provide(quotas={words[0]: float(words[1])})
        return 0, ""

    def _copy(self, words: list[str]) -> tuple[int, str]:
        """Copy a file of the repository."""
        shutil.copy(ROOT / words[0], self.folder / words[1])
        return 0, ""

    def _export(self, words: list[str]) -> tuple[int, str]:
        name, _, value = words[0].partition("=")
        os.environ[name] = value
        return 0, ""

    def _python(self, words: list[str]) -> tuple[int, str]:
        return self._process([sys.executable, *words])

    def _make(self, words: list[str]) -> tuple[int, str]:
        """Run a target of the folder; those of the repository, which run this test, are planned."""
        if (self.folder / "Makefile").exists():
            return self._process(["make", *words])
        return self._process(["make", "--dry-run", "--directory", str(ROOT), *words])

    def _process(self, words: list[str]) -> tuple[int, str]:
        done = subprocess.run(
            words, cwd=self.folder, env=self.environment, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        return done.returncode, done.stdout

    def _orchestrate(self, words: list[str]) -> tuple[int, str]:
        options = options_of(words[0])
        if "--yes" in options and "--dry-run" not in words:
            words = [*words, "--yes"]
        if "--time-scale" in options and "--aws" not in words:
            words = [*words, "--time-scale", "0.002"]
        handlers = logging.root.handlers[:]
        done = CliRunner().invoke(app, words, prog_name="orchestrate")
        # Those of a command write to its terminal, which is closed when it has ended.
        logging.root.handlers[:] = handlers
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.output

    def _aws(self, words: list[str]) -> tuple[int, str]:
        """Send a request as the AWS CLI would, its options named by the members of the request."""
        service, operation, *options = words
        client = boto3.client(service.removesuffix("api"))
        names = {xform_name(name): name for name in client.meta.service_model.operation_names}
        method = operation.replace("-", "_")
        if method not in names:
            raise NotRun(f"{service} has no operation {operation}")
        shape = client.meta.service_model.operation_model(names[method]).input_shape
        members = {xform_name(name, "-"): name for name in shape.members} if shape else {}
        values = zip(options[::2], options[1::2], strict=True)
        request: dict[str, object] = {
            members[name.removeprefix("--")]: text for name, text in values
        }
        if shape and "Metadata" in shape.members and "Metadata" in request:
            request["Metadata"] = dict([str(request["Metadata"]).split("=", 1)])
        getattr(client, method)(**request)
        return 0, ""


def options_of(name: str) -> set[str]:
    """Return the options of a command of `orchestrate`."""
    assert name in commands(), f"there is no orchestrate {name}"
    return {option for each in commands()[name].params for option in each.opts}


@cache
def commands() -> dict[str, Any]:
    """Return the commands of `orchestrate`, by name."""
    group: Any = get_command(app)
    return dict(group.commands)


def _with_scripts(path: str) -> str:
    return f"{Path(sys.executable).parent}{os.pathsep}{path}"


# What differs from run to run, or from machine to machine.
_MASKED = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"), "<time>"),
    (re.compile(r"\d+(\.\d)? s\b(?!,)"), "<seconds>"),
    (re.compile(r"[\d,]+ bytes"), "<bytes>"),
    (re.compile(r"of which \d+ are left"), "of which <minutes> are left"),
)


def masked(text: str) -> list[str]:
    """Return the lines of an output without what differs from run to run."""
    for pattern, instead in _MASKED:
        text = pattern.sub(instead, text)
    return [line.rstrip() for line in text.splitlines()]


def differs(shown: str, printed: str) -> str:
    """Return how an output differs from what is shown of it, where `…` stands for any lines."""
    expected, actual = masked(shown), masked(printed)
    # A page is a terminal, which wraps lines.
    words = [".*" if word == "…" else re.escape(word) for word in " ".join(expected).split()]
    if re.fullmatch(r"\s+".join(words).replace(r"\s+.*", r"(\s.*)?"), "\n".join(actual), re.DOTALL):
        return ""
    return "\n".join(["shown:", *expected, "printed:", *actual])


def provide(aws: EmbeddedAws) -> None:
    """Make the buckets with data and the role that the pages name."""
    s3, iam = aws.client("s3"), aws.client("iam")
    for bucket in BUCKETS:
        s3.create_bucket(Bucket=bucket)
    for place in ("my-data/digits", "incoming/set", "elsewhere/set"):
        bucket, _, prefix = place.partition("/")
        s3.put_object(Bucket=bucket, Key=f"{prefix}/one.csv", Body=b"1,2\n")
    aws.provide(roles=[ROLE])
    allowed = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    iam.put_role_policy(RoleName=ROLE.partition("/")[2], PolicyName="all", PolicyDocument=policy)
