"""What a definition may call, the engine of the embedded AWS takes."""

from __future__ import annotations

import pytest

from orchestration.backends.stepfunctions.integrations import services
from orchestration.local.engine.tasks.aws_sdk import error_prefix
from orchestration.local.engine.tasks.services import operations


@pytest.mark.parametrize("name", services.known())
def test_services_that_rendering_knows_are_known_here(name: str) -> None:
    assert operations(services.service(name).name)


@pytest.mark.parametrize("name", services.known())
def test_the_names_of_errors_begin_as_rendering_says(name: str) -> None:
    service = services.service(name)
    assert error_prefix(service.name) == service.prefix
