"""Every command that a page shows is run, in its reader's place, and prints what is shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from orchestration.cli.commands.beginning.starting import TEMPLATES
from orchestration.execution.timing import TIME_SCALE
from orchestration.local import EmbeddedAws
from tests.shown.pages import ShownCommand, ShownFile, Step, steps
from tests.shown.readers import ROOT, NotRun, Reader, commands, differs, options_of, provide

PAGES = {
    str(path.relative_to(ROOT)): path
    for path in (
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "tests/README.md")),
        *sorted((ROOT / "docs").glob("*.md")),
    )
}
SHOWN = {name: list(steps(path)) for name, path in PAGES.items()}
# Pages that tests of their own go through, command by command.
WHOLE_ELSEWHERE = {"docs/tutorial.md": "tests/artifacts/test_tutorial.py"}
EXAMPLES = {
    str(path.relative_to(ROOT)): "tests/conformance/gallery.py"
    for path in sorted((ROOT / "examples").glob("*/README.md"))
}
# What the reader above can't run, and why; each of these has to fail there.
NOT_RUN = {
    r"aws cloudformation deploy ": "the AWS CLI's own command, which needs an account",
    r"export AIRFLOW_CLI_TOKEN=\$\(curl ": (
        "a shell that asks an Airflow for a token: tests/cli/test_runs_on_airflow.py"
    ),
    r"orchestrate (start|watch|logs|stop|rerun) .*--on airflow\b": (
        "an Airflow: tests/cli/test_runs_on_airflow.py"
    ),
    r"pip install -r requirements.txt": (
        "an environment of its own: tests/house/test_distribution.py"
    ),
}
SETTINGS = (
    *("churn", "digits", "deployed", "trial", "nightly", "request", "wrong_machine"),
    *("questions", "chat_with_runtime"),
)


def _shared() -> dict[str, ShownFile]:
    # Of a name that several pages use, the README's, or else the first.
    return {
        step.name: step
        for name, shown in reversed(SHOWN.items())
        for step in reversed(shown)
        if isinstance(step, ShownFile) and not step.hidden and name not in WHOLE_ELSEWHERE
    }


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    with EmbeddedAws(time_scale=0.002) as aws:
        provide(aws)
        (tmp_path / "home").mkdir()
        one = Reader(tmp_path / "home", aws, _shared())
        (tmp_path / "config").write_text(
            "[profile research]\naws_access_key_id = x\naws_secret_access_key = x\n"
            f"region = us-east-1\nendpoint_url = {aws.endpoint_url}\n"
        )
        for name, value in one.environment.items():
            if name.startswith("AWS_"):
                monkeypatch.setenv(name, value)
        # So that commands look as often as this account is fast.
        monkeypatch.setenv(TIME_SCALE, str(aws.time_scale))
        monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
        for name in ("AIRFLOW_API_URL", "IMAGE", "ROLE", "TOPIC"):  # which pages export
            monkeypatch.setenv(name, "")
        monkeypatch.chdir(tmp_path / "home")
        yield one


def excused(line: str) -> bool:
    return any(re.match(pattern, line) for pattern in NOT_RUN)


def problems(shown: Iterable[Step], reader: Reader) -> Iterator[str]:
    """Do what a page says; yield what does not go as it shows."""
    for step in shown:
        if isinstance(step, ShownFile):
            reader.save(step)
            continue
        try:
            status, printed = reader.perform(step.line)
        except NotRun as reason:
            if not excused(step.line):
                yield f"$ {step.line}\nis not run: {reason}"
            continue
        if excused(step.line):
            if status == 0:
                yield f"$ {step.line}\nruns, so NOT_RUN must not name it"
        elif status != step.status:
            yield f"$ {step.line}\nexits {status}, expected {step.status}\n{printed}"
        elif step.output and (difference := differs(step.output, printed)):
            yield f"$ {step.line}\n{difference}"


def told(found: Iterable[str]) -> None:
    text = "\n\n".join(found)
    if text:
        pytest.fail(text, pytrace=False)


def ways(shown: list[Step], *, thorough: bool) -> list[Step]:
    """Return the steps without the commands that take long, or up to the last of these."""
    long = [n for n, each in enumerate(shown) if isinstance(each, ShownCommand) and each.thorough]
    if not thorough:
        return [each for n, each in enumerate(shown) if n not in long]
    return [
        each
        for n, each in enumerate(shown)
        if n in long or isinstance(each, ShownFile) or each.hidden
    ]


def _with_commands(*, thorough: bool) -> list[str]:
    return [
        name
        for name, shown in SHOWN.items()
        if name not in WHOLE_ELSEWHERE
        and any(isinstance(s, ShownCommand) and (s.thorough or not thorough) for s in shown)
    ]


@pytest.mark.slow
@pytest.mark.toolkit
@pytest.mark.parametrize("name", _with_commands(thorough=False))
def test_the_commands_of_a_page_do_as_shown(name: str, reader: Reader) -> None:
    told(problems(ways(SHOWN[name], thorough=False), reader))


@pytest.mark.thorough
@pytest.mark.toolkit
@pytest.mark.parametrize("name", _with_commands(thorough=True))
def test_the_long_commands_of_a_page_do_as_shown(name: str, reader: Reader) -> None:
    told(problems(ways(SHOWN[name], thorough=True), reader))


@pytest.mark.slow
@pytest.mark.toolkit
def test_the_commands_of_the_templates_run(reader: Reader) -> None:
    told(problems(steps(ROOT / "tests" / "shown" / "settings" / "churn.md"), reader))
    (reader.folder / ".env").write_text(
        "BUCKET=my-bucket\nROLE=arn:aws:iam::123456789012:role/SageMakerExecution\n"
        "DATA=s3://my-data/digits\n"
    )
    readme = [
        step.line for step in steps(reader.folder / "README.md") if isinstance(step, ShownCommand)
    ]
    workflow = (reader.folder / ".github" / "workflows" / "pipeline.yml").read_text()
    makefile = (reader.folder / "Makefile").read_text()
    targets = re.findall(r"^([a-z-]+):.*##", makefile, re.MULTILINE)
    planned = {t: reader.perform(f"make --dry-run {t}")[1].strip().splitlines() for t in targets}
    lines = [*readme, *re.findall(r"- run: (.*)", workflow)]
    elsewhere = {
        step.line.removeprefix("cd churn && ")
        for name in ("README.md", "docs/commands.md")
        for step in SHOWN[name]
        if isinstance(step, ShownCommand)
    }
    # The gallery runs this example on the other two backends.
    others = {"orchestrate run --on airflow", "orchestrate run --on step-functions"}
    made = [t for t, lines in planned.items() if not {*lines} & {*elsewhere, *others}]
    assert {"check", "data", "lock", "deploy"} <= {*made}
    lines += [f"make {t}{' ARGS=--dry-run' * (t == 'deploy')}" for t in made]
    told(
        problems(
            (ShownCommand(each) for each in dict.fromkeys(lines) if each not in elsewhere), reader
        )
    )


@pytest.mark.thorough
@pytest.mark.parametrize("template", sorted(TEMPLATES.keys() - {"scikit-learn"}))
def test_the_commands_of_another_template_run(template: str, reader: Reader) -> None:
    told(problems([ShownCommand(f"orchestrate init own --template {template}")], reader))
    told(problems([ShownCommand("cd own")], reader))
    example = (reader.folder / ".env.example").read_text()
    # Its profile is that of somebody's account.
    (reader.folder / ".env").write_text(re.sub(r"(?m)^AWS_PROFILE=.*\n", "", example))
    readme = [s.line for s in steps(reader.folder / "README.md") if isinstance(s, ShownCommand)]
    workflow = (reader.folder / ".github" / "workflows" / "pipeline.yml").read_text()
    makefile = (reader.folder / "Makefile").read_text()
    targets = re.findall(r"^([a-z-]+):.*##", makefile, re.MULTILINE)
    made = [f"make {each}{' ARGS=--dry-run' * (each == 'deploy')}" for each in targets]
    # tests/cli/test_init.py trains each template, the gallery on the other two backends.
    trains = {"make run", "make airflow", "make step-functions"}
    lines = [*readme, *re.findall(r"- run: (.*)", workflow), *(m for m in made if m not in trains)]
    assert {"make check", "make data", "make lock", "make deploy ARGS=--dry-run"} <= {*lines}
    chosen = [
        each for each in dict.fromkeys(lines) if not re.match(r"orchestrate (run|logs)", each)
    ]
    told(problems(map(ShownCommand, chosen), reader))


@pytest.mark.slow
def test_the_examples_of_the_help_run(reader: Reader) -> None:
    for name in SETTINGS:
        told(problems(steps(ROOT / "tests" / "shown" / "settings" / f"{name}.md"), reader))
    examples = _examples()
    del examples["demo"]  # which `make demo` runs
    # A run is started before it is looked at, and the runtime is copied beside no other copy.
    first, last = examples.pop("start"), examples.pop("vendor-runtime")
    lines = [*first, *(line for each in examples.values() for line in each), *last]
    statuses = {line: 1 for line in examples["lint"]}
    told(problems((ShownCommand(line, status=statuses.get(line, 0)) for line in lines), reader))


def _examples() -> dict[str, list[str]]:
    """Return the examples in the help of each command."""
    return {
        name: re.findall(r"Example: `(orchestrate [^`]*)`", " ".join((command.help or "").split()))
        for name, command in commands().items()
    }


def test_every_command_has_an_example_of_itself() -> None:
    others = {
        name: lines
        for name, lines in _examples().items()
        if not lines or any(line.split()[1] != name for line in lines)
    }
    assert others == {}


def test_every_excuse_is_needed() -> None:
    lines = [s.line for shown in SHOWN.values() for s in shown if isinstance(s, ShownCommand)]
    lines.append("pip install -r requirements.txt")  # of the templates' README
    assert [p for p in NOT_RUN if not any(re.match(p, line) for line in lines)] == []
    for name, test in {**WHOLE_ELSEWHERE, **EXAMPLES}.items():
        text = (ROOT / test).read_text()
        assert Path(name).stem.upper() in text or "README.md" in text


def test_every_command_is_shown() -> None:
    lines = [s.line for shown in SHOWN.values() for s in shown if isinstance(s, ShownCommand)]
    used = {line.split()[1] for line in lines if line.startswith("orchestrate ")}
    assert commands().keys() - used == {"demo"}  # which `make demo` runs


def test_what_is_spoken_of_exists() -> None:
    for path in PAGES.values():
        for name, rest in re.findall(
            r"`orchestrate ([a-z][a-z-]*)([^`]*)`", path.read_text("utf-8")
        ):
            unknown = set(re.findall(r"(?<= )--?[a-z][a-z-]*", rest)) - options_of(name)
            assert not unknown, (path.name, name)
