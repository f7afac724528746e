"""``orchestrate vendor-runtime``: copies the runtime into a folder of training scripts."""

from __future__ import annotations

from pathlib import Path

from orchestration.cli.output import document, note, say
from orchestration.errors import OrchestrationError


def vendor_runtime(directory: Path, *, as_json: bool = False) -> None:
    """Copy the runtime into a folder of code, and print its path."""
    from orchestration.stages.vendoring import vendor

    try:
        files = vendor(directory)
    except OSError as error:
        raise OrchestrationError(f"the runtime can't be copied: {error}") from error
    if as_json:
        document({"directory": str(files[0].parent), "files": [str(file) for file in files]})
    else:
        say(str(files[0].parent))
    note(f"{len(files)} files; where a pipeline is locked, lock it again: `orchestrate lock`")
