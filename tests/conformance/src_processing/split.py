"""Counts the lines of this host's share, and copies it; the first host writes the report."""

import json
import os
import sys
from pathlib import Path

ROOT = Path(os.environ["SAGEMAKER_BASE_DIR"])
DATA = ROOT / "processing"
options = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
if "--exit" in options:
    (ROOT / "output/message").write_text("the data is not usable")
    raise SystemExit(int(options["--exit"]))
if "--stop" in options:
    import time

    import boto3

    boto3.client("sagemaker").stop_processing_job(
        ProcessingJobName=os.environ["PROCESSING_JOB_NAME"]
    )
    time.sleep(600)
resources = json.loads((ROOT / "config/resourceconfig.json").read_text())
host = sorted(resources["hosts"]).index(resources["current_host"])
shared = sorted((DATA / "input/raw").rglob("*.txt"))
for path in shared:
    (DATA / "output/lines" / f"{host}-{path.name}").write_text(path.read_text())
everything = sum(len(p.read_text().split()) for p in (DATA / "input/all").rglob("*.txt"))
if host == 0:
    counts = {"hosts": len(resources["hosts"]), "files": len(shared), "words": everything}
    report = {"counts": counts, "note": os.environ["NOTE"]}
    (DATA / "output/facts/report.json").write_text(json.dumps(report))
