"""A DAG that did not change has one version, however often it is parsed."""

from __future__ import annotations

from tools.installation.airflow import Airflow

_PARSES = 5


def unchanged(airflow: Airflow) -> bool:
    """Parse all files several times, and after a restart of the DAG processor."""
    before = _versions(airflow)
    for _ in range(_PARSES):
        _wait_for_parse(airflow)
    airflow.replace_component("dag-processor")
    _wait_for_parse(airflow)
    return _versions(airflow) == before


def _versions(airflow: Airflow) -> list[list[str]]:
    return airflow.postgres.rows("select dag_id, version_number from dag_version order by 1, 2")


def _wait_for_parse(airflow: Airflow) -> None:
    query = "select dag_id, last_parsed_time from dag order by 1"
    before = airflow.postgres.rows(query)

    def parsed() -> bool:
        now = airflow.postgres.rows(query)
        return all(a != b for a, b in zip(before, now, strict=True))

    airflow.wait("files to be parsed again", parsed, 180)
