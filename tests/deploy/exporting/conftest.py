"""Each pipeline is built and exported once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from orchestration.deploy.exporting import Export, export
from tests.deploy.exporting.cases import Case

Make: TypeAlias = Callable[[Path], Case]
Made: TypeAlias = Callable[[Make], tuple[Case, Export]]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A case and its export."""
    known: dict[Make, tuple[Case, Export]] = {}

    def once(make: Make) -> tuple[Case, Export]:
        if make not in known:
            case = make(tmp_path_factory.mktemp("code"))
            options: dict[str, Any] = {**case.place, **case.options}
            known[make] = case, export(case.pipeline, parameters=case.given, **options)
        return known[make]

    return once
