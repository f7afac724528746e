"""Channels in Pipe mode: named pipes `<channel>_0`, `<channel>_1`, ..., one for every epoch.

https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-training-algo-running-container.html#your-algorithms-training-algo-running-container-inputdataconfig
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import json
import os
import random
import struct
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestration.local.account import storage
from orchestration.local.account.storage import Caller, Location

_POLL_S = 0.05
# https://mxnet.apache.org/versions/1.9.1/api/faq/recordio
_RECORDIO_MAGIC = 0xCED7230A


class Pipe:
    """A channel of a host, written for as many epochs as a script reads."""

    def __init__(self, channel: Mapping[str, Any], objects: Sequence[Location], path: Path) -> None:
        self._channel = channel
        self._objects = list(objects)
        self._path = path
        self._ended = threading.Event()
        self._make(0)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop writing."""
        self._ended.set()
        self._thread.join(5)

    def _fifo(self, epoch: int) -> Path:
        return self._path.with_name(f"{self._path.name}_{epoch}")

    def _make(self, epoch: int) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(self._fifo(epoch))

    def _serve(self) -> None:
        epoch = 0
        while (end := self._open(self._fifo(epoch))) is not None:
            try:
                # A reader may stop in the middle of an epoch and open the next one.
                with contextlib.suppress(BrokenPipeError):
                    self._write(end, epoch)
            finally:
                # Created before this one ends, so that it exists once a reader has read this one.
                self._make(epoch + 1)
                os.close(end)
            epoch += 1

    def _open(self, fifo: Path) -> int | None:
        """Open the pipe for writing, once it has a reader."""
        while not self._ended.is_set():
            try:
                return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
            time.sleep(_POLL_S)
        return None

    def _write(self, end: int, epoch: int) -> None:
        for content in self._records(epoch):
            rest = memoryview(content)
            while rest and not self._ended.is_set():
                try:
                    rest = rest[os.write(end, rest) :]
                except BlockingIOError:
                    time.sleep(_POLL_S)

    def _records(self, epoch: int) -> Iterator[bytes]:
        source = self._channel["DataSource"]["S3DataSource"]
        wrapped = self._channel.get("RecordWrapperType") == "RecordIO"
        for content in self._contents(source, epoch):
            yield _recordio(content) if wrapped else content

    def _contents(self, source: Mapping[str, Any], epoch: int) -> Iterator[bytes]:
        if source.get("S3DataType") == "AugmentedManifestFile":
            lines = [line for place in self._objects for line in storage.read(place).splitlines()]
            for line in self._shuffled(lines, epoch):
                yield from _attributes(
                    json.loads(line), source["AttributeNames"], self._objects[0].caller
                )
            return
        unpack = self._channel.get("CompressionType") == "Gzip"
        for place in self._shuffled(self._objects, epoch):
            content = storage.read(place)
            yield gzip.decompress(content) if unpack else content

    def _shuffled(self, listed: list[Any], epoch: int) -> list[Any]:
        if "ShuffleConfig" not in self._channel:
            return listed
        # A different order in each epoch, and the same orders in every run.
        seed = f"{self._channel['ShuffleConfig']['Seed']}/{epoch}"
        return random.Random(seed).sample(listed, len(listed))  # noqa: S311  (no secret)


def _attributes(line: Mapping[str, Any], names: Sequence[str], caller: Caller) -> Iterator[bytes]:
    for name in names:
        value = line[name]
        if name.endswith("-ref"):
            yield storage.read(Location.parse(value, caller))
        else:
            yield (value if isinstance(value, str) else json.dumps(value)).encode()


def _recordio(content: bytes) -> bytes:
    padding = b"\0" * (-len(content) % 4)
    return struct.pack("<II", _RECORDIO_MAGIC, len(content)) + content + padding
