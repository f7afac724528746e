"""Looks at what another thread changes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def meanwhile(change: Callable[[int], object], look: Callable[[], object], times: int) -> None:
    """Look again and again while another thread changes something so many times.

    They take turns between nearly all steps, so that a loop of one is interrupted by the other.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(1) as pool:
            changes = [pool.submit(change, number) for number in range(times)]
            while not all(each.done() for each in changes):
                look()
    finally:
        sys.setswitchinterval(before)
    for each in changes:
        each.result()
