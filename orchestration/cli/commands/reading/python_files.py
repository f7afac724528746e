"""Python files that build pipelines: they are run, and their mistakes told with the line."""

from __future__ import annotations

import contextlib
import runpy
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration.errors import OrchestrationError, PipelineError, Problem

if TYPE_CHECKING:
    from orchestration.pipeline.pinning.in_python import Built


def built_by(path: Path) -> list[Built]:
    """Run a file, and return the pipelines that it builds."""
    from orchestration.pipeline.pinning.in_python import building

    with building() as built:
        imported(path)
    if not built:
        message = (
            "calls no Pipeline(…), so there is nothing to lock; "
            "a pipeline in YAML is locked by the name of that file"
        )
        raise PipelineError([Problem(path.name, message)])
    return built


def imported(path: Path) -> dict[str, Any]:
    """Run a file as Python imports one, and return its names: it finds the modules beside it.

    What it prints, and what Airflow logs, goes to standard error: the other is the command's own.
    """
    file = path.resolve()
    folder = str(file.parent)
    sys.path.insert(0, folder)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return runpy.run_path(str(file))
    except (OrchestrationError, OSError):
        raise
    except Exception as error:  # somebody's own code
        message = f"{type(error).__name__}: {getattr(error, 'msg', error)}"
        raise PipelineError([Problem(_place(error, file), message)]) from error
    finally:
        sys.path.remove(folder)


def _place(error: Exception, file: Path) -> str:
    """Return the file and the line of it in which an error arose."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{Path(error.filename).name}, line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(file)]
    return f"{file.name}, line {lines[-1]}" if lines else file.name
