"""The reason for a failure, written where SageMaker looks for it.

https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-training-algo-running-container.html
https://docs.aws.amazon.com/sagemaker/latest/dg/build-your-own-processing-container.html
"""

from __future__ import annotations

import argparse
import contextlib
import traceback
from pathlib import Path
from typing import Iterator

from . import files
from .errors import Stopped
from .folders import Folders

_MAX_CHARACTERS = 1024


def write_failure(reason: str, path: Path | None = None) -> bool:
    """Write why a job failed: a training job's FailureReason, a processing job's ExitMessage.

    SageMaker shows at most 1024 characters; a longer reason loses its middle. The first reason is
    kept, since ranks that fail because of it fail later. Returns whether this was the first.
    `path`: `/opt/ml/output/failure` by default, `/opt/ml/output/message` in a processing job.
    """
    path = Folders.from_environment().failure if path is None else path
    path.parent.mkdir(parents=True, exist_ok=True)
    return files.create(path, shortened(reason))


def shortened(reason: str, characters: int = _MAX_CHARACTERS) -> str:
    """Shorten a text to a number of characters by cutting out its middle.

    >>> shortened("It is a long way to Tipperary", 17)
    'It is a … pperary'
    """
    if len(reason) <= characters:
        return reason
    gap = " … "
    tail = (characters - len(gap)) // 2
    return reason[: characters - len(gap) - tail] + gap + reason[len(reason) - tail :]


@contextlib.contextmanager
def reported_failures(path: Path | None = None) -> Iterator[None]:
    """Write the reason for an exception that leaves the block, then let it propagate unchanged.

    A stop is not a failure, and neither is exit status 0. Also works as a decorator of `main`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as disk:
    ...     try:
    ...         with reported_failures(Path(disk) / "failure"):
    ...             raise ValueError("no such loss")
    ...     except ValueError:
    ...         (Path(disk) / "failure").read_text().partition(" (")[0]
    'ValueError: no such loss'
    """
    try:
        yield
    except (Stopped, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        if not (isinstance(error, SystemExit) and error.code in (None, 0)):
            # The disk may be what failed, and must not hide the error.
            with contextlib.suppress(OSError):
                write_failure(_reason(error), path)
        raise


def _reason(error: BaseException) -> str:
    text = _exit_text(error) if isinstance(error, SystemExit) else _text(error)
    every = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in every if frame.filename != argparse.__file__] or every
    if not frames:
        return text
    return f"{text} ({Path(frames[-1].filename).name}:{frames[-1].lineno})"


def _exit_text(error: SystemExit) -> str:
    if not isinstance(error.code, int):
        return str(error.code)
    # When a script prints an error and exits, as argparse does, the error is still attached.
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    said = _text(cause) if cause else _printed(error)
    return f"exit status {error.code}" + (f": {said}" if said else "")


def _printed(error: SystemExit) -> str:
    """Return what argparse printed before it ended the script; it attaches no error of its own."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or last.tb_frame.f_code is not argparse.ArgumentParser.exit.__code__:
        return ""
    return str(last.tb_frame.f_locals.get("message") or "").strip()


def _text(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(type(error), error)).strip()
