"""Pipelines named on a command line: a YAML file, or ``module:attribute``."""

from __future__ import annotations

import ast
import importlib
import os
import re
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import typer

from orchestration.errors import PipelineError, near

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline

_IN_FILE = re.compile(r"(?P<file>.+\.py)(:(?P<attribute>[A-Za-z_]\w*))?")
_ATTRIBUTE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


_stage_modules: list[str] = []


def use_stages(modules: Sequence[str]) -> None:
    """Take the modules of further kinds of stages, for the pipelines of one command."""
    _stage_modules[:] = modules


def stage_modules(folder: Path | None = None) -> list[ModuleType]:
    """Import the modules of further kinds of stages, from a folder, from here or installed."""
    return [_module(name, folder or Path.cwd(), "--stages") for name in _stage_modules]


@dataclass(frozen=True, slots=True)
class Named:
    """A pipeline that a user named, not loaded yet."""

    text: str
    path: Path | None
    """Its YAML file; None for an attribute of a module."""

    def load(self) -> Pipeline:
        """Load the pipeline; a :class:`~orchestration.errors.PipelineError` has all mistakes."""
        if self.path is None:
            return _attribute(self.text)
        from orchestration.pipeline import Pipeline

        return Pipeline.load(self.path, stages=stage_modules(self.path.parent))

    def load_with_code_as_it_is(self) -> Pipeline:
        """Load the pipeline with what its folders hold now, whatever its lock file says of them."""
        if not self.stale():
            return self.load()
        if self.path is None:
            from orchestration.pipeline.pinning.in_python import with_code_as_it_is

            loaded = self.load()
            built = loaded.built()
            return loaded if built is None else with_code_as_it_is(loaded, built)
        from orchestration.pipeline import Pipeline
        from orchestration.pipeline.files import lock

        stages = stage_modules(self.path.parent)
        return Pipeline.load(self.path, stages=stages, lock=lock(self.path))

    def stale(self) -> list[str]:
        """List the folders of code that changed since the lock file was written."""
        from orchestration.pipeline.files import stale

        try:
            if self.path is not None:
                return stale(self.path)
            built = self.load().built()
            return [] if built is None else built.stale()
        except PipelineError:
            # Without the folders there is nothing to compare; lock files exist for this case.
            return []

    def stale_warnings(self) -> list[str]:
        """Say which folders of code changed since the lock file was written."""
        return [
            f"{key} changed since it was locked; run `orchestrate lock {self}`"
            for key in self.stale()
        ]

    def __str__(self) -> str:
        return self.text


def named(text: str) -> Named:
    """Find the pipeline that a user named; a usage error if there is none."""
    path = Path(text)
    in_file = _IN_FILE.fullmatch(text)
    if in_file is not None and Path(in_file["file"]).is_file():
        hint = of_file(Path(in_file["file"]), in_file["attribute"])
        raise _usage(f"{text} is a Python file; name the pipeline in it as {hint}")
    is_file = path.suffix in (".yaml", ".yml") or os.sep in text or path.exists()
    if not is_file and _ATTRIBUTE.fullmatch(text):
        return Named(text, None)
    if not is_file:
        raise _usage(f"{text!r} is neither a YAML file nor module:attribute")
    try:
        path.open("rb").close()
    except OSError as error:
        raise _usage(f"can't read {text}: {error.strerror}{_nearby(path)}") from error
    return Named(text, path)


def of_file(path: Path, attribute: str | None = None) -> str:
    """Return how a command names a pipeline of a Python file, which is not run for that."""
    place, here = path.resolve(), Path.cwd().resolve()
    # Modules are found from the working directory.
    below = place.relative_to(here) if place.is_relative_to(here) else Path(place.name)
    module = ".".join(below.with_suffix("").parts)
    names = [attribute] if attribute is not None else _pipelines(path)
    forms = " or ".join(f"{module}:{name}" for name in names)
    return f"MODULE:ATTRIBUTE, here {forms}" if forms else "MODULE:ATTRIBUTE"


def _pipelines(path: Path) -> list[str]:
    """Return the names that a file gives to what ``Pipeline(…)`` returns."""
    try:
        tree = ast.parse(path.read_text("utf-8"))
    except (OSError, SyntaxError, ValueError):
        return []
    return [
        target.id
        for each in tree.body
        if isinstance(each, ast.Assign | ast.AnnAssign) and isinstance(each.value, ast.Call)
        if isinstance(each.value.func, ast.Name | ast.Attribute)
        if ast.unparse(each.value.func).rpartition(".")[2] == "Pipeline"
        for target in (each.targets if isinstance(each, ast.Assign) else [each.target])
        if isinstance(target, ast.Name)
    ]


class Known(NamedTuple):
    """A pipeline that may be deployed, as far as a command line tells."""

    name: str
    region: str | None = None
    """``None``: any, or unknown."""
    role: object = None
    """``None``: unknown."""


def deployed(text: str) -> Known:
    """Return what is known of a pipeline that may be deployed.

    Its file need not exist any more: another text is the name itself, whose region is not known.
    """
    path = Path(text)
    is_name = not (path.suffix in (".yaml", ".yml") or os.sep in text or ":" in text)
    if is_name and not path.is_file():
        return Known(text)
    pipeline = named(text).load()
    return Known(pipeline.name, pipeline.region, pipeline.role)


def of_run(run: str) -> Known:
    """Return the pipeline of a run: of an execution's ARN, ``PIPELINE:NAME`` or ``DAG/RUN``."""
    parts = run.split(":")
    if parts[0] == "arn" and len(parts) > 6:
        return Known(parts[6], parts[3])
    return Known(run.partition("/")[0].partition(":")[0])


def _nearby(path: Path) -> str:
    try:
        files = [p.name for p in path.parent.iterdir() if p.suffix in (".yaml", ".yml")]
    except OSError:
        return ""
    return near(path.name, files)


def _attribute(text: str) -> Pipeline:
    from orchestration.pipeline import Pipeline

    module_name, _, attribute = text.partition(":")
    stage_modules()
    module = _module(module_name, Path.cwd(), "PIPELINE")
    value: object = module
    for name in attribute.split("."):
        if not hasattr(value, name):
            known = [n for n, v in vars(module).items() if isinstance(v, Pipeline)]
            raise _usage(f"module {module_name} has no {attribute!r}{near(attribute, known)}")
        value = getattr(value, name)
    if not isinstance(value, Pipeline):
        raise _usage(f"{text} is a {type(value).__name__}, not a Pipeline")
    return value


def _module(name: str, folder: Path, option: str) -> ModuleType:
    """Import a module that is installed or lies in a folder or here."""
    folders = [str(Path.cwd()), str(folder.resolve())]
    sys.path[:0] = folders
    try:
        # What it prints is no part of a command's answer.
        with redirect_stdout(sys.stderr):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise _usage(f"there is no module {name!r} here or installed", option) from error
    finally:
        for path in folders:
            sys.path.remove(path)


def _usage(message: str, option: str = "PIPELINE") -> typer.BadParameter:
    return typer.BadParameter(message, param_hint=option)
