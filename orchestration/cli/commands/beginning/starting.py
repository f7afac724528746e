"""``orchestrate init``: a folder with a pipeline that runs, to begin from.

A template is an example of the gallery; what stands around it (Makefile, DAG file, settings, CI)
is the same for all.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Final

import typer

from orchestration import __version__
from orchestration.cli.commands.beginning.installing import installed
from orchestration.cli.commands.rendering import lock, warn
from orchestration.cli.output import document, say
from orchestration.cli.run_file import NAME as RUN_FILE
from orchestration.errors import OrchestrationError, near

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST: Final = 30
_ROLE: Final = "arn:aws:iam::123456789012:role/SageMakerExecution"
"""In the place of a role of one's own."""
_EXTRAS: Final = "airflow,aws,demo,local"
"""For the commands of the Makefile; `demo` has the toolkits that start training scripts."""
_XGBOOST: Final = ('xgboost-cpu; sys_platform != "darwin"', 'xgboost; sys_platform == "darwin"')
"""XGBoost without CUDA, which has no wheels for macOS; there the other one has no CUDA either."""
_REQUIREMENTS: Final = "requirements.txt"
_SCAFFOLD: Final[Mapping[str, str]] = {
    "Makefile": "Makefile",
    "README.md": "README.md",
    "dag.txt": "dag.py",
    "env.example": ".env.example",
    "gitignore": ".gitignore",
    "pipeline.yml": ".github/workflows/pipeline.yml",
}
"""Files around every template, and what they are called."""
_LEFT_OUT: Final = shutil.ignore_patterns("README.md", "__pycache__", "*.lock.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """An example as something to begin from."""

    example: str
    """Its folder in ``examples/``."""
    file: str
    """Its pipeline."""
    about: str
    made: str
    """The folder that its ``make.py`` writes made-up data to."""
    inputs: Mapping[str, str]
    """Parameters that are S3 URIs, and the local folder of each."""
    packages: Sequence[str]
    """Packages that its scripts import on this machine; on SageMaker the containers have them."""
    scripts: Mapping[str, str]
    """Files in which one's own code goes, and what each does."""
    trains: str = "train"
    """The stage that trains."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Further parameters for runs on this machine, as YAML."""


TEMPLATES: Final[Mapping[str, Template]] = {
    "scikit-learn": Template(
        example="retraining",
        file="churn.yaml",
        about="A classifier with scikit-learn: trained anew when there is new data, measured on "
        "data that it has not seen, and deployed if it is good enough.",
        made="customers",
        inputs={"data": "customers"},
        packages=("numpy", "scikit-learn"),
        scripts={
            "shared/table.py": "how data is read",
            "train/train.py": "the model, and how it is fitted",
            "evaluate/evaluate.py": "how good it is: writes `evaluation.json`",
            "train/inference.py": "how the endpoint answers",
        },
    ),
    "text-classifier": Template(
        example="text_classifier",
        file="tickets.yaml",
        about="A classifier of short texts with PyTorch: the best of its checkpoints is deployed "
        "if it is good enough.",
        made="messages",
        inputs={"data": "messages"},
        packages=("torch",),
        scripts={
            "shared/texts.py": "how data is read, and what the model sees of it",
            "shared/model.py": "the network",
            "train/train.py": "the training loop, which leaves a checkpoint after each epoch",
            "evaluate/evaluate.py": "how good a checkpoint is: writes `evaluation.json`",
            "train/inference.py": "how the endpoint answers",
        },
    ),
    "xgboost": Template(
        example="xgboost",
        file="flats.yaml",
        about="Boosted trees with XGBoost on rows of CSV, deployed if their error is small enough.",
        made="rents",
        inputs={"data": "rents"},
        packages=("numpy", *_XGBOOST),
        scripts={
            "shared/flats.py": "how data is read",
            "train/train.py": "the objective, and when to stop",
            "evaluate/evaluate.py": "how good the model is: writes `evaluation.json`",
            "train/inference.py": "how the endpoint answers",
        },
    ),
    "fsdp-finetune": Template(
        example="fine_tuning",
        file="fine_tuning.yaml",
        about="A causal language model of Hugging Face, fine-tuned with FSDP over two machines, "
        "and deployed if it has learned enough.",
        made="tiny-llama",
        inputs={"model": "tiny-llama", "texts": "data"},
        packages=("numpy", "torch", "transformers"),
        scripts={
            "shared/texts.py": "how texts are read",
            "train/train.py": "the training loop",
            "evaluate/evaluate.py": "how good the model is: writes `evaluation.json`",
            "train/inference.py": "how the endpoint answers",
        },
    ),
    "tuning": Template(
        example="tuning",
        file="sweep.yaml",
        about="A search for hyperparameters, whose best model is measured on data of its own and "
        "deployed if it is good enough.",
        made="rentals",
        inputs={"data": "rentals"},
        packages=("numpy",),
        scripts={
            "shared/rentals.py": "how data is read, and the model",
            "train/train.py": "one training job of the search",
            "evaluate/evaluate.py": "how good the best model is",
            "train/inference.py": "how the endpoint answers",
        },
        trains="tune",
        parameters={"jobs": "2"},
    ),
}


def init(directory: Path, template: str, *, as_json: bool = False) -> None:
    """Write a folder with a pipeline, its code, made-up data and what stands around them."""
    name = directory.resolve().name
    chosen = _chosen(template)
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise typer.BadParameter(
            f"{name!r} becomes the name of the pipeline: small letters, digits and hyphens, at "
            f"most {_LONGEST}",
            param_hint="DIRECTORY",
        )
    if directory.exists() and any(directory.iterdir()):
        raise typer.BadParameter(f"{directory} is not empty", param_hint="DIRECTORY")
    _copy(chosen, directory, name)
    _surround(chosen, directory, name)
    warnings = _make_data(chosen, directory)
    following = _following(directory, f"python make.py {chosen.made} && " if warnings else "")
    warn(warnings)
    warnings += lock(str(directory / f"{name}.yaml"), check=False)
    if as_json:
        document(
            {
                "directory": str(directory),
                "pipeline": f"{name}.yaml",
                "template": template,
                "scripts": dict(chosen.scripts),
                "files": _files(directory),
                "warnings": warnings,
                "next": following,
            }
        )
        return
    say(
        f"{directory}: {name}.yaml, {', '.join(chosen.scripts)}, {RUN_FILE} and what is around them"
    )
    say(f"next: {following}")


def _files(directory: Path) -> list[str]:
    return sorted(
        path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()
    )


def _following(directory: Path, making: str) -> str:
    needed = (directory / _REQUIREMENTS).read_text("utf-8").splitlines()
    install = "" if installed(needed) else f"pip install -r {_REQUIREMENTS} && "
    return f"cd {directory} && {install}{making}orchestrate run"


def _chosen(template: str) -> Template:
    if template not in TEMPLATES:
        raise typer.BadParameter(
            f"unknown template {template!r}{near(template, TEMPLATES)}", param_hint="--template"
        )
    return TEMPLATES[template]


def _examples() -> Path:
    """Return the folder of the examples: in an installed package, or in a checkout."""
    package = Path(str(resources.files("orchestration")))
    for folder in (package / "examples", package.parent / "examples"):
        if folder.is_dir():
            return folder
    raise OrchestrationError(f"the examples are missing in {package}; install the package again")


def _copy(template: Template, directory: Path, name: str) -> None:
    source = _examples() / template.example
    shutil.copytree(source, directory, ignore=_LEFT_OUT, dirs_exist_ok=True)
    pipeline = directory / template.file
    text = pipeline.read_text("utf-8")
    old = re.search(r"(?m)^name: (\S+)$", text)
    if old is None:
        raise OrchestrationError(f"{source / template.file} has no name")
    text = text.replace(f"name: {old[1]}\n", f"name: {name}\n", 1).replace(
        f", /{old[1]}]", f", /{name}]"
    )
    pipeline.unlink()
    (directory / f"{name}.yaml").write_text(text, "utf-8")


def _surround(template: Template, directory: Path, name: str) -> None:
    uris = {each: f"s3://my-bucket/{each}" for each in template.inputs}
    given = {"bucket": "my-bucket", "role": _ROLE, **uris}
    values = {
        "NAME": name,
        "ABOUT": template.about,
        "DATA": template.made,
        "STAGE": template.trains,
        "SCRIPTS": "\n".join(f"| `{path}` | {about} |" for path, about in template.scripts.items()),
        "GIVEN": "\n".join(f'        "{each}": "{value}",' for each, value in given.items()),
        "SETTINGS": "\n".join(f"{each.upper()}={value}" for each, value in given.items()),
        "DEPLOYED": " ".join(f"-p {each}=$({each.upper()})" for each in given),
    }
    for source, target in _SCAFFOLD.items():
        text = resources.files("orchestration.cli.scaffold").joinpath(source).read_text("utf-8")
        path = directory / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(re.sub(r"@([A-Z]+)@", lambda match: values[match[1]], text), "utf-8")
    (directory / RUN_FILE).write_text(_run_file(template, name), "utf-8")
    needed = [f"sagemaker-orchestration[{_EXTRAS}]>={__version__}", *template.packages]
    (directory / _REQUIREMENTS).write_text("\n".join((*needed, "")), "utf-8")


def _run_file(template: Template, name: str) -> str:
    places = {each: f"s3://incoming/{name}/{each}" for each in template.inputs}
    given = {"bucket": "workspace", **places, **template.parameters}
    return "\n".join(
        (
            "# For `orchestrate run` on this machine; the buckets are those of an embedded AWS.",
            f"pipeline: {name}.yaml",
            "parameters:",
            *(f"  {each}: {value}" for each, value in given.items()),
            "uploads:",
            *(f"  {local}: {places[each]}" for each, local in template.inputs.items()),
            "",
        )
    )


def _make_data(template: Template, directory: Path) -> list[str]:
    """Make the data of a template, and return why that could not be done."""
    command = [sys.executable, "make.py", template.made]
    made = subprocess.run(command, cwd=directory, check=False, capture_output=True, text=True)  # noqa: S603 - our own script
    if not made.returncode:
        return []
    last = made.stderr.strip().splitlines()[-1:] or ["it said nothing"]
    return [
        f"the made-up data is missing ({last[0]}); install the packages and run "
        f"`python make.py {template.made}`"
    ]
