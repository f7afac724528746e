"""No check of the doctor is without a test that names its finding."""

from __future__ import annotations

import re
from pathlib import Path

import orchestration.preflight

_NAMED = re.compile(r"""(?:check=|looked\(\s*)"([a-z ]+)\"""")


def test_each_check_is_named_by_a_test_that_provokes_it() -> None:
    package = Path(orchestration.preflight.__file__).parent
    checks = {name for path in package.rglob("*.py") for name in _NAMED.findall(path.read_text())}
    here = Path(__file__)
    tests = "".join(path.read_text() for path in here.parent.glob("*.py") if path != here)
    assert len(checks) >= 16
    assert {name for name in checks if f'"{name}"' not in tests} == set()
