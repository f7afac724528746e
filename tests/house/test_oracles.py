"""The judges of the other tests do judge."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracles import AslValidators, JsonataError, JsonataReference


def _definition(**state: Any) -> dict[str, Any]:
    return {"QueryLanguage": "JSONata", "StartAt": "Only", "States": {"Only": state}}


def test_a_good_definition_has_no_problems(asl_validators: AslValidators) -> None:
    assert asl_validators(_definition(Type="Pass", Output="{% $states.input %}", End=True)) == []


@pytest.mark.parametrize(
    ("state", "validator"),
    [
        ({"Type": "Pass", "Next": "Nowhere"}, "asl-validator"),
        ({"Type": "Pass", "Output": "{% ((( %}", "End": True}, "asl-validator"),
        ({"Type": "Pass", "Next": "Nowhere"}, "amazon-states-language-service"),
    ],
)
def test_a_bad_definition_is_refused_by(
    asl_validators: AslValidators, state: dict[str, Any], validator: str
) -> None:
    assert validator in {problem["validator"] for problem in asl_validators(_definition(**state))}


@pytest.mark.parametrize("text", ["plain", 'quote " \\ back', "line\nbreak", "ünïcode \u2028 🚀"])
def test_any_text_comes_back_from_the_reference_jsonata(
    jsonata_reference: JsonataReference, text: str
) -> None:
    assert jsonata_reference("$text & ''", {"text": text}) == text


def test_reference_jsonata_tells_null_from_undefined(jsonata_reference: JsonataReference) -> None:
    assert jsonata_reference("null", undefined="undefined") is None
    assert jsonata_reference("$missing", undefined="undefined") == "undefined"


def test_reference_jsonata_refuses_with_its_own_code(jsonata_reference: JsonataReference) -> None:
    with pytest.raises(JsonataError) as caught:
        jsonata_reference("(((")
    assert caught.value.code == "S0203"
