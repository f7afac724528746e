"""Whether a person has asked for a task once more, as opposed to Airflow's own retries."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow.sdk import Context


def cleared(context: Context) -> bool:
    """Whether a person has cleared this task: only that raises the limit of its tries."""
    return context["ti"].max_tries > (context["task"].retries or 0)


def first_since_cleared(context: Context) -> bool:
    """Whether this is the first attempt since then, not one of the retries that follow it."""
    ti = context["ti"]
    before = ti.max_tries - (context["task"].retries or 0)
    return bool(cleared(context) and ti.try_number == before + 1)
