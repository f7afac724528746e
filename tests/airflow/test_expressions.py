"""What a task's request comes to, with the same random cases that the JSONata is held to."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestration.airflow import dag
from orchestration.errors import ExpressionError
from orchestration.expressions import evaluate
from orchestration.expressions.codec import encode
from orchestration.expressions.evaluate import run_token
from tests.airflow.workflows import training, workflow
from tests.backends.jsonata_cases import EXPRESSIONS, RUNS, OneRun

FAILED = object()
NASTY = st.text(max_size=12) | st.sampled_from(
    ["{{ ds }}", "{{ 1 / 0 }}", "{% raw %}", "{# #}", "$.x", "{% $x %}", "'\"\n\\", "漢 😀", "x.sh"]
)
MODERATE = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


class TaskInstance(SimpleNamespace):
    """What a rendered task asks of Airflow's: earlier tasks' XComs."""

    map_index = 0

    def xcom_pull(self, task_ids: str, key: str = "", map_indexes: int | None = None) -> Any:
        return self.xcoms.get(key or task_ids)


@pytest.fixture(scope="module")
def rendered() -> Any:
    """The request of a task in a run, or FAILED."""
    made = dag(workflow(training("base")))
    task: Any = made.get_task("base").prepare_for_execution()
    task.items_task = "elements"

    def rendered(tree: Any, run: OneRun) -> Any:
        xcoms = {**run.values.results, "elements": [run.values.current]}
        context: Any = {
            "ti": TaskInstance(xcoms=xcoms),
            "task": task,
            "dag": made,
            "run_id": "r",
            "params": run.values.parameters,
        }
        task.reads = {step: {"task": step, "element": False} for step in run.values.results}
        task.config = encoded = encode(tree)
        task.render_template_fields(context)
        # What has no value is shown as it is written.
        return FAILED if task.config is encoded else task.config

    return rendered


def expected(tree: Any, run: OneRun) -> Any:
    values = replace(run.values, run_token=run_token("hand_built/r"))
    try:
        return evaluate(tree, values)
    except ExpressionError:
        return FAILED


@given(EXPRESSIONS, RUNS, NASTY)
@MODERATE
def test_a_task_sends_what_the_expressions_mean(
    rendered: Any, expression: Any, run: OneRun, text: str
) -> None:
    tree = {"Environment": {"mixed": expression, "literal": text, text: [text]}}
    assert rendered(tree, run) == expected(tree, run)


@given(NASTY, RUNS)
@MODERATE
def test_a_users_text_is_never_a_template(rendered: Any, text: str, run: OneRun) -> None:
    assert rendered({"HyperParameters": {text: text}}, run) == {"HyperParameters": {text: text}}
