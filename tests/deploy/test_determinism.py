"""The same pipeline is the same bytes in every process: definitions, DAGs, policies, exports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_CODE = """\
import json
from orchestration.backends import airflow, companion, stepfunctions
from orchestration.deploy.exporting import cloudformation, export, terraform
from orchestration.deploy.identities import identities
from tests.conformance.pipelines import exporting
from tests.deploy.pipelines import ACCOUNT, PARAMETERS, worked

for make in (exporting, worked):
    pipeline = make()
    workflow = pipeline.lower()
    print(stepfunctions.dumps(stepfunctions.render(workflow)))
    print(stepfunctions.dumps(companion.render(workflow)))
    print(airflow.to_json(airflow.render(workflow)))
    print(pipeline.to_yaml())
    for each in identities(pipeline, ACCOUNT, parameters=PARAMETERS):
        print(each.who, each.name, json.dumps([each.explained(), dict(each.trust), each.notes]))
    exported = export(pipeline, parameters=PARAMETERS)
    print(cloudformation.template(exported).text())
    print(terraform.text(exported))
"""


def test_what_is_made_of_a_pipeline_does_not_depend_on_the_process() -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _CODE],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ".", "HOME": "/nonexistent"},
            cwd=ROOT,
            stdout=subprocess.PIPE,
        )
        for seed in ("1", "2")
    ]
    first, second = (process.communicate()[0] for process in processes)
    assert [process.returncode for process in processes] == [0, 0]
    assert first == second
    assert len(first) > 100_000
