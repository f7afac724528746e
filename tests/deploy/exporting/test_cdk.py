"""CDK takes a template into a stack of its own, as it is."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from orchestration.deploy.exporting import cloudformation
from tests.cli.conftest import ROOT
from tests.deploy.exporting import resolving
from tests.deploy.exporting.cases import ACCOUNT, CASES, REGION, VALUES
from tests.deploy.exporting.conftest import Made, Make

PYTHON = ROOT / ".venv-cdk" / "bin" / "python"
APP = Path(__file__).with_name("cdk_app.py")
STACK = {
    **VALUES,
    "Subnet": "subnet-0123456789abcdef0",
    "AWS::AccountId": ACCOUNT,
    "AWS::Region": REGION,
    "AWS::Partition": "aws",
    "AWS::StackName": "own",
    "AWS::URLSuffix": "amazonaws.com",
}

pytestmark = pytest.mark.skipif(
    not PYTHON.exists() or shutil.which("node") is None,
    reason="CDK is not installed (make setup-cdk)",
)


@pytest.mark.thorough
@pytest.mark.parametrize("make", CASES)
def test_a_stack_of_cdk_creates_what_the_template_says(
    make: Make, made: Made, tmp_path: Path
) -> None:
    text = cloudformation.template(made(make)[1]).text(as_json=True)
    file = tmp_path / "pipeline.stack.json"
    file.write_text(text)
    ours = json.loads(text)
    given = {name: VALUES[name] for name in ours.get("Parameters", {}) if name in VALUES}
    folder = tmp_path / "cdk.out"
    command = [str(each) for each in (PYTHON, APP, file, json.dumps(given), folder)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    theirs = json.loads((folder / "Own.template.json").read_text())
    assert theirs["Resources"].keys() == ours["Resources"].keys()
    theirs["Resources"] = {id: theirs["Resources"][id] for id in ours["Resources"]}
    assert resolving.cloudformation(theirs, STACK) == resolving.cloudformation(ours, STACK)
    assert not given.keys() & theirs.get("Parameters", {}).keys()
