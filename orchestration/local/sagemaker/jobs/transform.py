"""Batch transform jobs: a process serves the model, as behind an endpoint, and gets every object.

It serves all instances of the job. https://docs.aws.amazon.com/sagemaker/latest/dg/batch-transform.html
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from orchestration.local.account import storage
from orchestration.local.account.account import Account
from orchestration.local.account.protocol import ACCOUNT_ID, JsonObject, now
from orchestration.local.account.storage import Location
from orchestration.local.processes.children import read_log
from orchestration.local.sagemaker.checks.transform import check_transform_request
from orchestration.local.sagemaker.jobs.lifecycle import Job
from orchestration.local.sagemaker.jobs.log_streams import LogStream
from orchestration.local.sagemaker.jobs.records import Records
from orchestration.local.sagemaker.outcomes import JobFailed, JobStopped, uploading
from orchestration.local.sagemaker.serving.model_host import ModelHost, ModelHostFailed

StartHost = Callable[[Account, str, JsonObject, Path], ModelHost]
_OK = 200


class TransformJob(Job):
    """A batch transform job."""

    kind = "Transform"
    arn_word = "transform-job"

    def __init__(
        self, account: Account, request: JsonObject, model: JsonObject, start_host: StartHost
    ) -> None:
        # The job has no role of its own.
        role = str(model.get("ExecutionRoleArn", ACCOUNT_ID))
        check_transform_request(account, request, role)
        super().__init__(account, request, role)
        self._model = model
        self._start_host = start_host
        self._records = Records(request)

    def run(self) -> None:
        """Serve the model, and write the answer to every object."""
        source = self.request["TransformInput"]["DataSource"]["S3DataSource"]
        data = Location.parse(source["S3Uri"], self.caller)
        objects = storage.objects(data)
        if not objects:
            raise JobFailed(f"ClientError: No S3 objects found under S3 URL {data}")
        self.started = now()
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        try:
            host = self._start_host(self.account, self.name, self._model, self.directory)
        except ModelHostFailed as error:
            raise JobFailed(f"AlgorithmError: {error}") from error
        stream = f"{self.name}/i-local-{int(time.time())}"
        group = "/aws/sagemaker/TransformJobs"
        log = LogStream(self.caller, group, stream, self.directory / "log")
        try:
            written = {each.relative: self._transformed(host, data, each) for each in objects}
        finally:
            host.stop()
            log.copy(final=True)
        output = Location.parse(self.request["TransformOutput"]["S3OutputPath"], self.caller)
        with uploading():
            for relative, content in written.items():
                storage.write(output.child(f"{relative}.out"), content)

    def describe(self) -> JsonObject:
        """Return the members that only transform jobs have: none."""
        return {}

    def logs(self) -> str:
        """Return the log of the model's process so far."""
        return read_log(self.directory / "log")

    def _transformed(self, host: ModelHost, data: Location, each: storage.StoredObject) -> bytes:
        content = storage.read(data.at(each.key))
        if self.request["TransformInput"].get("CompressionType") == "Gzip":
            content = gzip.decompress(content)
        return b"".join(
            self._records.answered(batch, self._asked(host, self._records.body(batch), each.key))
            for batch in self._records.batches(content)
        )

    def _asked(self, host: ModelHost, body: bytes, key: str) -> bytes:
        if self.stop_requested.is_set():
            raise JobStopped
        answer = host.invoke(body, _headers(self.request))
        if answer.status != _OK:
            told = answer.body.decode(errors="replace")[:500]
            raise JobFailed(f"ClientError: {key}: the model answered {answer.status}: {told}")
        return answer.body


def _headers(request: Mapping[str, Any]) -> dict[str, str]:
    kind = request["TransformInput"].get("ContentType", "application/octet-stream")
    return {"Content-Type": kind, "Accept": request["TransformOutput"].get("Accept", "*/*")}
