"""Stage many small objects by DataSync on the embedded AWS, and count what the run asks of AWS."""

import argparse
import resource
import sys
import time
from pathlib import Path
from typing import Final

from benchmarks.runs import transitions
from orchestration import DataStaging, Pipeline, S3Destination
from orchestration.local import EmbeddedAws
from orchestration.local.run import On, run
from orchestration.local.run.executions import role
from orchestration.local.server.__main__ import main as serve

ACCOUNT: Final = "123456789012"
BUCKET: Final = "incoming"
ROLE: Final = f"arn:aws:iam::{ACCOUNT}:role/DataSync"
SIZE: Final = 16
"""Bytes of an object: what is counted is calls, not bytes."""


class Filled(EmbeddedAws):
    """An embedded AWS whose process puts objects into a bucket before it serves."""

    def __init__(self, count: int) -> None:
        super().__init__(time_scale=0.02)
        self._count = count

    def _command(self, directory: Path) -> list[str]:
        own = [sys.executable, "-m", "benchmarks.staging", f"--fill={self._count}"]
        return [*own, *super()._command(directory)[3:]]


def fill(count: int) -> None:
    """Put objects into a bucket, in folders of a thousand."""
    from moto.s3.models import s3_backends

    s3 = s3_backends[ACCOUNT]["aws"]
    s3.create_bucket(BUCKET, "us-east-1")
    for number in range(count):
        s3.put_object(BUCKET, f"data/{number // 1000:06}/{number:09}", b"%016d" % number)


def staging() -> Pipeline:
    """Return a pipeline with one copy."""
    destination = S3Destination(copy_by="datasync", datasync_role=ROLE)
    stage = DataStaging(name="staging", source=f"s3://{BUCKET}/data", destination=destination)
    return Pipeline(name="many", workspace="s3://workspace/many", stages=[stage])


def ran(count: int, on: On) -> None:
    """Stage so many objects and print what that took."""
    with Filled(count) as aws:
        role(aws, "DataSync", "datasync.amazonaws.com")
        aws.client("s3").create_bucket(Bucket="workspace")
        before = time.monotonic()
        report = run(staging(), on=on, aws=aws)
        took = time.monotonic() - before
        copied = sum(key.startswith("many/") for key in aws.state()["s3"]["workspace"])
        changing = sum(not call.operation.startswith(("Describe", "List")) for call in report.calls)
        print(
            f"{count} objects, {on}: {report.state} {report.cause or ''}; {copied} at the "
            f"destination; {len(report.calls)} API calls, {changing} change; {took:.0f} s, "
            f"{count / took:.0f} objects a second"
        )
        if on == "step-functions":
            print(f"  {transitions(aws)} transitions")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(f"  {peak:.1f} GiB at the most in the account's process")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=1_000_000)
    parser.add_argument("--on", choices=("direct", "step-functions"), default="step-functions")
    arguments = parser.parse_args()
    ran(arguments.objects, arguments.on)


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1].startswith("--fill="):
        fill(int(sys.argv[1].partition("=")[2]))
        serve(sys.argv[2:])
    else:
        main()
