"""The process that all accounts and direct runs of these tests are forked from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.accounts import Zygote


@pytest.fixture(scope="package")
def zygote() -> Iterator[Zygote]:
    with Zygote() as started:
        yield started
