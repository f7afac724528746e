"""Kinds of Lustre file systems that can be created, and their defaults."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestration.local import EmbeddedAws
from tests.local.breaking.file_systems import ACCEPTED, DEFAULT_VERSIONS
from tests.local.conftest import prepare


@pytest.fixture(scope="module")
def account() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.001) as embedded:
        prepare(embedded)
        yield embedded


@pytest.mark.parametrize("kind", ACCEPTED)
def test_a_file_system_that_keeps_the_rules_is_created(account: EmbeddedAws, kind: str) -> None:
    made = account.client("fsx").create_file_system(**ACCEPTED[kind])["FileSystem"]
    assert made["Lifecycle"] == "CREATING"


@pytest.mark.parametrize("version", DEFAULT_VERSIONS)
def test_versions_have_the_services_defaults(account: EmbeddedAws, version: str) -> None:
    made = account.client("fsx").create_file_system(**DEFAULT_VERSIONS[version])["FileSystem"]
    assert made["FileSystemTypeVersion"] == version
