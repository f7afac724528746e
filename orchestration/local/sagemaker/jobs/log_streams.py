"""The log lines of jobs in the embedded CloudWatch Logs, where Airflow reads them."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from orchestration.local.account.protocol import ACCOUNT_ID
from orchestration.local.account.storage import Caller
from orchestration.local.iam.working import lets_log

# Two jobs that start at once have one group.
_CREATING = threading.Lock()


class LogStream:
    """A log stream with the lines of a growing log file, if its job's role may write it."""

    def __init__(self, caller: Caller, group: str, stream: str, file: Path) -> None:
        from moto.logs.models import logs_backends

        region = str(caller.region)
        self._allowed = lets_log(caller.principal, region, group, stream)
        if not self._allowed:
            return
        backend: Any = logs_backends[ACCOUNT_ID][region]
        with _CREATING:
            if group not in backend.groups:
                backend.create_log_group(group, {})
        self._group = backend.groups[group]
        self._group.create_log_stream(stream)
        self._stream = stream
        self._file = file
        self._offset = 0

    def copy(self, *, final: bool = False) -> None:
        """Copy new lines; with `final`, also an unfinished last line."""
        if not self._allowed or not self._file.exists():
            return
        with self._file.open("rb") as file:
            file.seek(self._offset)
            content = file.read()
        end = len(content) if final else content.rfind(b"\n") + 1
        self._offset += end
        lines = content[:end].decode(errors="replace").splitlines()
        at = int(time.time() * 1000)
        events = [{"timestamp": at, "message": line} for line in lines if line]
        if events:
            self._group.put_log_events(self._stream, events)
