"""Processes that make many clients share what botocore would make for each of them."""

from __future__ import annotations

import json
import subprocess
import sys

CLIENTS = """
import boto3, json
from orchestration.local.server.sessions import load_once
load_once()
made = [boto3.Session(region_name="eu-west-1").client(name) for name in 2 * ["logs", "s3"]]
heard = []
made[0].meta.events.register("told.cloudwatch-logs", lambda **_: heard.append(1))
for client in made:
    client.meta.events.emit("told.logs")
print(json.dumps({
    "methods": type(made[0]).describe_log_groups is type(made[2]).describe_log_groups,
    "rules": made[1]._ruleset_resolver._provider is made[3]._ruleset_resolver._provider,
    "classes": type(made[1]) is type(made[3]),
    "urls": [client.meta.endpoint_url for client in made[:2]],
    "uploads": hasattr(made[3], "upload_file"),
    "heard": len(heard),
}))
"""


def test_clients_share_methods_and_rules_and_no_handler() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CLIENTS], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == {
        "methods": True,
        "rules": True,
        "classes": False,
        "urls": ["https://logs.eu-west-1.amazonaws.com", "https://s3.eu-west-1.amazonaws.com"],
        "uploads": True,
        "heard": 1,
    }
