"""Ways of a choice in a loop or a mapped group, of which each element must go one only.

In Airflow 3.3.2 a choice in a mapped task group skips nothing: it leaves that to the scheduler, and
``NotPreviouslySkippedDep`` there looks for the choice of an unmapped task, so that both ways would
run. The first tasks of each way ask for themselves. ``tests/airflow/test_ways.py`` fails without
this module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import AirflowSkipException

if TYPE_CHECKING:
    from airflow.sdk import Context

_KEY = "skipmixin_key"
_FOLLOWED = "followed"


def only_if_chosen(choice: str) -> Callable[[Context], None]:
    """Return what a task does before it begins: skip itself where the choice went elsewhere."""

    def skip(context: Context) -> None:
        ti = context["ti"]
        left = ti.xcom_pull(task_ids=choice, key=_KEY, map_indexes=ti.map_index)
        if left is not None and ti.task_id not in left[_FOLLOWED]:
            raise AirflowSkipException(f"{choice} has chosen the other way")

    return skip
