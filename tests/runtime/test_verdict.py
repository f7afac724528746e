"""The job that decides: its rule against a plain reading of it, and what it reads and writes."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.expressions.evaluate import run_token
from orchestration.runtime import verdict
from orchestration.runtime.verdict.deciding import main
from orchestration.runtime.verdict.reports import Evaluation, read
from orchestration.runtime.verdict.rules import decide
from tests.runtime.test_package import old_python

REQUEST: dict[str, Any] = {
    "pipeline": "digits",
    "stage": "judge",
    "run": "0123456789ab",
    "metric": "accuracy",
    "direction": "max",
    "failures_allowed": 0,
    "metrics": {
        "accuracy": {"path": ["metrics", "accuracy"]},
        "latency": {"path": ["timing", "p95"], "maximum": 40},
    },
    "slices": {"language": {"path": ["slices", "language"], "minimum": 0.5}},
}
CHAMPION = {"source": "the endpoint live", "margin": 0.1, "confidence": 0.95}
GOOD = {"metrics": {"accuracy": 0.9}, "timing": {"p95": 40}, "slices": {"language": {"de": 0.5}}}

_NUMBERS = st.sampled_from([None, 0.25, 0.5, 0.75])
_ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "accuracy": _NUMBERS,
            "latency": st.sampled_from([None, 39.0, 40.0, 41.0]),
            "slices": st.lists(st.sampled_from([None, 0.4, 0.5]), min_size=1, max_size=2),
            "failed": st.sampled_from([False, False, False, True]),
        }
    ),
    max_size=5,
)


def evaluation(number: int, row: dict[str, Any]) -> Evaluation:
    if row["failed"]:
        return Evaluation(f"epoch-{number}", f"s3://c/{number}/", problem="it wrote nothing")
    return Evaluation(
        f"epoch-{number}",
        f"s3://c/{number}/",
        {"accuracy": row["accuracy"], "latency": row["latency"]},
        {"language": {str(n): value for n, value in enumerate(row["slices"])}},
    )


def plainly(rows: list[dict[str, Any]], direction: str, threshold: float, allowed: int) -> Any:
    """Read the rule word by word: the outcome, and which row is the best."""
    failed = sum(row["failed"] for row in rows)
    if not rows:
        return "no_checkpoint", None
    if failed > allowed or failed == len(rows):
        return "evaluations_failed", None
    if all(row["failed"] or row["accuracy"] is None for row in rows):
        return "not_finite", None
    best: int | None = None
    for number, row in enumerate(rows):
        whole = not row["failed"] and row["accuracy"] is not None
        if not whole or row["latency"] is None or row["latency"] > 40:
            continue
        if any(value is None or value < 0.5 for value in row["slices"]):
            continue
        if best is None or ahead(row["accuracy"], rows[best]["accuracy"], direction):
            best = number
    if best is None:
        return "bounds_missed", None
    value = rows[best]["accuracy"]
    reached = value >= threshold if direction == "max" else value <= threshold
    return ("promoted" if reached else "below_threshold"), f"epoch-{best}"


def ahead(own: float, other: float, direction: str) -> bool:
    return own > other if direction == "max" else own < other


@given(_ROWS, st.sampled_from(["max", "min"]), st.sampled_from([0.25, 0.5]), st.integers(0, 3))
def test_the_verdict_is_a_plain_reading_of_the_rule(
    rows: list[dict[str, Any]], direction: str, threshold: float, allowed: int
) -> None:
    rule = {"direction": direction, "threshold": threshold, "failures_allowed": allowed}
    evaluations = [evaluation(number, row) for number, row in enumerate(rows)]
    decision = decide(evaluations, None, {**REQUEST, **rule})
    best = None if decision.best is None else decision.best.name
    assert (decision.outcome, best) == plainly(rows, direction, threshold, allowed)


def written(folder: Path, report: Any, examples: dict[str, float] | None = None) -> Path:
    folder.mkdir(parents=True)
    text = report if isinstance(report, str) else json.dumps(report)
    (folder / "evaluation.json").write_text(text)
    if examples is not None:
        lines = [json.dumps({"id": name, "accuracy": own}) for name, own in examples.items()]
        (folder / "examples.jsonl").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize(
    ("report", "problem"),
    [
        ("{", "evaluation.json is no JSON in UTF-8"),
        ([], "evaluation.json is no JSON object"),
        ({**GOOD, "metrics": {}}, "evaluation.json has no metrics.accuracy"),
        (
            {**GOOD, "metrics": {"accuracy": "1"}},
            "metrics.accuracy of evaluation.json is not a number",
        ),
        (
            {**GOOD, "metrics": {"accuracy": True}},
            "metrics.accuracy of evaluation.json is not a number",
        ),
        ({**GOOD, "slices": {"language": {}}}, "slices.language of evaluation.json has no slices"),
    ],
)
def test_a_report_that_lacks_a_number_is_a_failed_evaluation(
    report: Any, problem: str, tmp_path: Path
) -> None:
    assert read(written(tmp_path / "a", report), "a", "s3://a", REQUEST).problem == problem


def test_an_evaluation_without_a_report_has_failed(tmp_path: Path) -> None:
    assert read(tmp_path, "a", "s3://a", REQUEST).problem == "it wrote no evaluation.json"


def test_numbers_may_come_as_sagemaker_s_model_quality_monitor_writes_them(tmp_path: Path) -> None:
    place = ["binary_classification_metrics", "accuracy"]
    monitor = {"accuracy": {"value": 0.75, "standard_deviation": "NaN"}}
    report = {**GOOD, "binary_classification_metrics": monitor}
    request = {**REQUEST, "metrics": {"accuracy": {"path": place}}}
    each = read(written(tmp_path / "a", report), "a", "s3://a", request)
    assert (each.problem, each.metrics) == ("", {"accuracy": 0.75})


def test_what_is_not_finite_is_none_and_slices_may_hold_several_metrics(tmp_path: Path) -> None:
    slices = {"de": {"accuracy": 0.6, "f1": 0.1}, "fr": math.nan}
    report = {**GOOD, "timing": {"p95": math.inf}, "slices": {"language": slices}}
    each = read(written(tmp_path / "a", report), "a", "s3://a", REQUEST)
    assert each.metrics == {"accuracy": 0.9, "latency": None}
    assert each.slices == {"language": {"de": 0.6, "fr": None}}


def asked(folder: Path, challenger: Any, champion: Any, **rule: Any) -> None:
    """Write what the job gets about one model and a champion."""
    models = {"model": "s3://new/model.tar.gz"}
    request = {**REQUEST, **models, "champion": {**CHAMPION, **rule, "model": "s3://old/"}}
    written(folder / "model", *challenger)
    written(folder / "champion", *champion)
    (folder / "request.json").write_text(json.dumps(request))


def against(folder: Path, challenger: Any, champion: Any, **rule: Any) -> Any:
    """Return the verdict on one model and a champion, each a report and scores of examples."""
    asked(folder / "in", challenger, champion, **rule)
    main(folder / "in", folder / "out")
    return json.loads((folder / "out/verdict.json").read_text())


@pytest.mark.parametrize(
    ("champion", "outcome"), [(0.9, "champion_kept"), (0.8, "promoted"), (0.95, "champion_kept")]
)
def test_without_scores_of_examples_the_improvement_must_exceed_the_margin(
    champion: float, outcome: str, tmp_path: Path
) -> None:
    old = {"metrics": {"accuracy": champion}}
    result = against(tmp_path, (GOOD,), (old,), margin=0.05)
    assert (result["outcome"], result["champion"]) == (outcome, "s3://old/")
    assert result["improvement"] == pytest.approx(0.9 - champion)
    assert "interval_low" not in result


def examples(right: int, of: int = 200) -> dict[str, float]:
    return {str(number): float(number < right) for number in range(of)}


def test_with_scores_of_examples_the_lower_end_must_exceed_the_margin(tmp_path: Path) -> None:
    old = {"metrics": {"accuracy": 0.85}}
    result = against(tmp_path / "a", (GOOD, examples(180)), (old, examples(170)), margin=0.0)
    assert result["outcome"] == "promoted"
    # Ten examples of 200: the improvement is real, and may be smaller than 0.04.
    assert 0 < result["interval_low"] < result["improvement"] < result["interval_high"]
    result = against(tmp_path / "b", (GOOD, examples(180)), (old, examples(170)), margin=0.04)
    assert result["outcome"] == "champion_kept"
    assert result["explanation"].endswith("the lower end must be above 0.04")


@pytest.mark.parametrize(
    ("champion", "words"),
    [
        (({"metrics": {}},), "the champion s3://old/: evaluation.json has no metrics.accuracy"),
        (({"metrics": {"accuracy": math.nan}},), "its accuracy is NaN or infinite"),
        (({"metrics": {"accuracy": 0.5}},), "champion has no scores of single examples"),
        (
            ({"metrics": {"accuracy": 0.9}}, examples(9, of=10)),
            "model was not evaluated on the examples of the champion",
        ),
        (
            ({"metrics": {"accuracy": 0.5}}, {"0": math.nan}),
            "champion: line 1 of examples.jsonl: accuracy is not a finite number",
        ),
        (
            ({"metrics": {"accuracy": 0.75}}, examples(3, of=4)),
            "7 examples are needed at the least; 4 were scored",
        ),
        (
            ({"metrics": {"accuracy": 0.6}}, examples(100)),
            "champion: accuracy is 0.6 in its report, and 0.5 in the mean of its examples",
        ),
    ],
)
def test_a_champion_that_cannot_be_compared_is_an_outcome_of_its_own(
    champion: Any, words: str, tmp_path: Path
) -> None:
    result = against(tmp_path, (GOOD, examples(180)), champion)
    assert result["outcome"] == "champion_not_evaluated"
    assert words in result["explanation"]


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.12", "3.13"])
def test_the_folder_is_a_program_that_needs_nothing_but_python(
    version: str, tmp_path: Path
) -> None:
    program = Path(verdict.__file__).parent
    shutil.copytree(program, tmp_path / "decider", ignore=shutil.ignore_patterns("__pycache__"))
    old = {"metrics": {"accuracy": 0.5}}
    asked(tmp_path / "in", (GOOD, examples(180)), (old, examples(100)))
    folders = (tmp_path / "in", tmp_path / "out")
    done = old_python(version, str(tmp_path / "decider"), *map(str, folders))
    assert (done.returncode, done.stdout.partition(":")[0]) == (0, "promoted"), done.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        *("report.html", "report.json", "verdict.json")
    ]


def test_a_thousand_checkpoints_and_a_hundred_slices_leave_a_run_few_figures(
    tmp_path: Path,
) -> None:
    prefixes = [f"runs/{'x' * 80}/epoch-{number:08}/" for number in range(1000)]
    slices = {f"language-{number}": 0.5 for number in range(100)}
    for number, prefix in enumerate(prefixes):
        report = {**GOOD, "metrics": {"accuracy": number / 1000}, "slices": {"language": slices}}
        written(tmp_path / "in" / run_token(f"{REQUEST['run']}/{prefix}"), report)
    listed = {"bucket": "b", "checkpoints": [{"Prefix": prefix} for prefix in prefixes]}
    (tmp_path / "in/request.json").write_text(json.dumps({**REQUEST, **listed}))
    assert (tmp_path / "in/request.json").stat().st_size < 200 * 1024
    main(tmp_path / "in", tmp_path / "out")
    result = json.loads((tmp_path / "out/verdict.json").read_text())
    assert result["best"] == f"s3://b/{prefixes[-1]}"
    assert (tmp_path / "out/verdict.json").stat().st_size < 2048
    report = json.loads((tmp_path / "out/report.json").read_text())
    assert len(report["evaluations"]) == 1000
    assert len(report["evaluations"][0]["slices"]["language"]) == 100
