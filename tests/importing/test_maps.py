"""What the states of a Map are sent, element by element."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.importing import Imported, from_data

TOPIC = "arn:aws:sns:us-east-1:111122223333:t"


def say(language: str, message: str) -> dict[str, Any]:
    resource = "arn:aws:states:::sns:publish"
    if language == "JSONata":
        return {
            "Type": "Task",
            "Resource": resource,
            "Arguments": {"TopicArn": TOPIC, "Message": message},
            "End": True,
        }
    parameters = {"TopicArn": TOPIC, "Message.$": message}
    return {"Type": "Task", "Resource": resource, "Parameters": parameters, "End": True}


def each(inner: dict[str, Any], language: str = "JSONPath", **fields: Any) -> Imported:
    processor = {"StartAt": next(iter(inner)), "States": inner}
    state = {"Type": "Map", "ItemProcessor": processor, "End": True, **fields}
    return from_data({"QueryLanguage": language, "StartAt": "Each", "States": {"Each": state}})


@pytest.mark.parametrize(
    ("language", "fields", "message"),
    [
        (
            "JSONata",
            {
                "Items": "{% $states.input.markets %}",
                "ItemSelector": {
                    "name": "{% $states.context.Map.Item.Value.name %}",
                    "bucket": "{% $states.input.bucket %}",
                },
            },
            "{% $states.input.name & ' to ' & $states.input.bucket %}",
        ),
        (
            "JSONPath",
            {
                "ItemsPath": "$.markets",
                "ItemSelector": {"name.$": "$$.Map.Item.Value.name", "bucket.$": "$.bucket"},
            },
            "States.Format('{} to {}', $.name, $.bucket)",
        ),
    ],
)
def test_a_selector_reads_the_input_of_the_map(
    language: str, fields: dict[str, Any], message: str
) -> None:
    stages = each({"Tell": say(language, message)}, language, **fields).description["stages"]
    assert stages["tell"]["request"]["Message"] == {
        "join": [{"each": "name"}, " to ", {"parameter": "bucket"}]
    }
    assert stages["tell"]["for_each"]["fields"] == {"name": "string"}
