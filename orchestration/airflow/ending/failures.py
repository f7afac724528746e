"""The tasks of a run that failed, and the errors that they have left."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from orchestration.backends.airflow.spec import ERROR as ERROR_KEY

if TYPE_CHECKING:
    from airflow.sdk import Context


def failures(
    context: Context, instance: Any, states: Collection[str], index: int | None = None
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the failed tasks in the order of the DAG, each with its error and cause.

    ``states`` are the names of the instances that failed; one that died has left nothing. ``index``
    is the element of a mapped group that they are in.
    """
    for task_id in context["dag"].task_dict:
        if any(name == task_id or _is_mapped(name, task_id) for name in states):
            yield task_id, _left(instance, task_id, index)


def _is_mapped(name: str, task_id: str) -> bool:
    """Return whether this names an instance of a mapped task: ``task_0``."""
    start, _, index = name.rpartition("_")
    return start == task_id and index.isdigit()


def _left(instance: Any, task_id: str, index: int | None) -> Mapping[str, str]:
    # Without map_indexes it pulls those of a mapped task's instances, and with None only that of a
    # task which is not mapped.
    chosen = {} if index is None else {"map_indexes": index}
    try:
        left = instance.xcom_pull(task_ids=task_id, key=ERROR_KEY, **chosen)
    except Exception:
        return {}
    several = left if isinstance(left, Sequence) else [left]
    return cast("Mapping[str, str]", next((each for each in several if each), {}))
