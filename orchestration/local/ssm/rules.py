"""The rules of the Parameter Store that a pipeline can break."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.local.account.rules import Rule

_REFUSED = "ValidationException"

RULES: Final[Mapping[str, Rule]] = {
    "names": Rule(
        _REFUSED,
        'Parameter name: can\'t be prefixed with "ssm" (case-insensitive). If formed as a path, it '
        "can consist of sub-paths divided by slash symbol; each sub-path can be formed as a mix of "
        "letters, numbers and the following 3 symbols .-_",
        "issue: https://github.com/boto/boto3/issues/1499",
    ),
    "standard parameters at most": Rule(
        _REFUSED,
        "Standard tier parameters support a maximum parameter value of 4096 characters. To create "
        "a larger parameter value, upgrade the parameter to use the advanced-parameter tier. For "
        "more information, see https://docs.aws.amazon.com/systems-manager/latest/userguide/"
        "parameter-store-advanced-parameters.html",
        "issue: the message as many quote it; number: model: PutParameterRequest.Value",
    ),
    "advanced parameters at most": Rule(
        _REFUSED,
        "Advanced tier parameters support a maximum parameter value of 8192 characters.",
        "model: PutParameterRequest.Value; wording assumed",
    ),
}
