"""The checks of requests to the Parameter Store that moto leaves out."""

from __future__ import annotations

from orchestration.checks import documented
from orchestration.checks.patterns import matches
from orchestration.local.account.protocol import Checked, JsonObject, Request
from orchestration.local.account.rules import broken
from orchestration.local.ssm.rules import RULES


class Ssm(Checked):
    """Systems Manager: moto answers what these checks let pass."""

    name = "ssm"

    def check_values(self, request: Request) -> None:
        """Raise the Parameter Store's error for a parameter that it does not take."""
        if request.operation == "PutParameter":
            _check_parameter(request.parameters)


def _check_parameter(values: JsonObject) -> None:
    # One that lacks either is not of the model's form.
    if not matches(documented.PARAMETER, values.get("Name", "-")):
        raise broken(RULES, "names")
    size, most = len(values.get("Value", "")), documented.LONGEST_PARAMETERS
    if values.get("Tier", "Standard") == "Standard" and size > most["Standard"]:
        raise broken(RULES, "standard parameters at most")
    if size > most["Advanced"]:
        raise broken(RULES, "advanced parameters at most")
