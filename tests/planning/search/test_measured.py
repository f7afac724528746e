"""Claims about plans that know measurements of the same training."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import replace
from math import exp, log
from pathlib import Path
from random import Random
from statistics import mean

import pytest

from orchestration.errors import PipelineError
from orchestration.planning.calibration.evaluate import score_rows
from orchestration.planning.calibration.rows import complete
from orchestration.planning.calibration.scores import Scored
from orchestration.planning.cost.estimates import step_seconds
from orchestration.planning.model import measurements
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.measurements import Measurement
from orchestration.planning.search.find import find_plans
from orchestration.planning.search.measured import corrections
from orchestration.planning.search.measured.kriging import Errors, Observation
from orchestration.planning.search.task import Task
from tests.planning.search.questions import LLAMA_7B, chosen, measurement, space, task

DATA = Path("tests/data/planner")

WHERE = space("ml.p4d.24xlarge", "ml.p4de.24xlarge", counts=(1,))


def measured(*each: Measurement) -> Task:
    return replace(task(), measurements=each)


PLAIN = chosen(find_plans(task(), space("ml.p4d.24xlarge", counts=(1,))))
"""A plan without measurements."""


@pytest.mark.parametrize("ratio", [0.6, 0.9, 1.0, 1.2, 2.5])
def test_what_was_measured_lies_in_the_interval_of_its_prediction(ratio: float) -> None:
    seconds = PLAIN.prediction.step_time_s * ratio
    gib = PLAIN.prediction.memory_gib * min(ratio, 1.1)
    known = measured(measurement(PLAIN, step_time_s=seconds, peak_memory_gib=gib))
    p = corrections.corrections(known).predict(PLAIN.configuration)
    assert p.low_s <= seconds <= p.high_s
    assert p.memory_low_gib <= gib <= p.memory_high_gib
    assert p.high_s / p.low_s < PLAIN.prediction.high_s / PLAIN.prediction.low_s


@pytest.mark.parametrize("ratio", [0.8, 1.3])
def test_configurations_of_the_same_kind_shift_the_same_way_and_less(ratio: float) -> None:
    seconds = PLAIN.prediction.step_time_s * ratio
    known = corrections.corrections(measured(measurement(PLAIN, step_time_s=seconds)))
    c = PLAIN.configuration
    other = replace(c, global_batch=2 * c.global_batch)
    far = replace(c, machine=replace(c.machine, accelerator="a10g"), zero=2, shard=None)
    shifts = [log(known.step_seconds(each) / step_seconds(each)) for each in (c, other, far)]
    assert all(shift * log(ratio) > 0 for shift in shifts)
    assert abs(shifts[0]) > abs(shifts[1]) > abs(shifts[2])


def test_measurements_of_another_model_change_nothing() -> None:
    other = replace(LLAMA_7B, layers=31)
    stranger = measurement(PLAIN, step_time_s=99.0, model=measurements.model_digest(other))
    before = find_plans(task(), WHERE).data()
    assert find_plans(measured(stranger), WHERE).data() == before


def test_the_choice_follows_what_was_measured() -> None:
    where = space("ml.p4d.24xlarge", counts=(1,))
    rival = find_plans(task(), where).alternatives[0]
    assert rival.layout.family != PLAIN.layout.family
    fast = measurement(rival, step_time_s=0.6 * rival.prediction.step_time_s)
    usual = measurement(PLAIN, step_time_s=PLAIN.prediction.step_time_s, job="usual")
    best = chosen(find_plans(measured(fast, usual), where))
    assert best.layout.family == rival.layout.family  # or one that shares what made it fast
    slow = measurement(PLAIN, step_time_s=PLAIN.prediction.step_time_s * 3)
    assert chosen(find_plans(measured(slow), WHERE)).configuration != PLAIN.configuration


def test_what_ran_out_of_memory_is_not_chosen_again() -> None:
    where = space("ml.p4d.24xlarge", counts=(1,))
    again = chosen(find_plans(measured(measurement(PLAIN, out_of_memory=True)), where))
    assert again.configuration != PLAIN.configuration
    assert again.prediction.memory.need < PLAIN.prediction.memory.need * 1.2


@pytest.mark.parametrize("ratio", [0.7, 1.4])
def test_pruning_with_measurements_finds_what_trying_all_finds(ratio: float) -> None:
    where = space("ml.p4d.24xlarge", "ml.g5.48xlarge", counts=(1,))
    known = measured(
        measurement(PLAIN, step_time_s=PLAIN.prediction.step_time_s * ratio),
    )
    best = chosen(find_plans(known, where))
    every = [
        chosen(find_plans(known, replace(where, types=(name,), recompute=(kind,))))
        for name in where.types
        for kind in ("none", "full")
        if find_plans(known, replace(where, types=(name,), recompute=(kind,))).chosen
    ]
    costs = [plan.cost_usd.expected for plan in every if plan.cost_usd is not None]
    assert best.cost_usd is not None
    assert best.cost_usd.expected <= min(costs) * (1 + 1e-9)


def test_files_read_as_they_were_written(tmp_path: Path) -> None:
    made = measurement(PLAIN, step_time_s=1.5, region="us-east-1")
    path = measurements.beside(tmp_path / "chat.yaml")
    path.write_text(measurements.text([made, made]), "utf-8")
    assert path.name == "chat.measurements.json"
    assert measurements.read(path) == (made,)


@pytest.mark.parametrize(
    ("content", "expected"),
    [("", "Invalid JSON"), ('{"measurements": [{}]}', "measurements.0.job: Field required")],
)
def test_wrong_files_are_refused_with_the_place(
    tmp_path: Path, content: str, expected: str
) -> None:
    path = tmp_path / "chat.measurements.json"
    path.write_text(content, "utf-8")
    with pytest.raises(PipelineError, match=expected):
        measurements.read(path)


def test_few_published_measurements_of_a_training_improve_the_others() -> None:
    """The figures of docs/probing.md."""
    fitted = [_revealed("benchmarks", count) for count in (0, 1, 3)]
    assert [round(100 * error) for error, _ in fitted] == [10, 8, 7]
    unseen = [_revealed("unseen", count) for count in (0, 1, 3)]
    assert [round(100 * error) for error, _ in unseen] == [9, 9, 7]
    assert [round(100 * held) for _, held in unseen] == [81, 84, 84]


def test_what_is_unsure_shifts_by_no_more_than_was_measured() -> None:
    seen = [Observation(("training", "a"), error=0.34, deviation=0.09, noise=corrections.NOISE)]
    sure, unsure = (Errors((0.5, 0.5), seen).estimate(("training", "b"), d) for d in (0.09, 0.9))
    assert sure.error == pytest.approx(unsure.error)
    assert 0.1 < sure.error < 0.34
    assert unsure.deviation > 2 * sure.deviation


@pytest.mark.parametrize("deviation", [0.01, 0.05, 0.07, 0.2, 1.0])
def test_no_expected_error_is_below_the_least(deviation: float) -> None:
    seen = [
        Observation(("training", key), error, width, corrections.NOISE)
        for key, error, width in (("a", -0.3, 0.05), ("a", 0.2, 0.1), ("b", -0.1, 0.5))
    ]
    errors = Errors((0.4, 0.6), seen)
    expected = [errors.error(("training", key), deviation) for key in "abc"]
    assert errors.least() <= min(expected)


def _revealed(name: str, count: int) -> tuple[float, float]:
    """Return the mean error of the rest, where `count` rows of each training are known.

    And how often the 80 % intervals of the rest hold. Each training counts alike, and the mean of
    twenty draws of its known rows. What was fitted is predicted without its publication.
    """
    trainings = defaultdict(list)
    for row in _scored(name):
        if row.measured_time_s:
            trainings[row.source, row.model].append(row)
    rest = [
        _rest(each, count, Random(draw))
        for each in trainings.values()
        if len(each) >= 6
        for draw in range(20)
    ]
    return mean(error for error, _ in rest), mean(held for _, held in rest)


def _scored(name: str) -> list[Scored]:
    with (DATA / f"{name}.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = score_rows([complete(row) for row in csv.DictReader(file)])[0]
    apart = json.loads((DATA / "left_out.json").read_text("utf-8"))["rows"]
    ratios = [apart[row.id][0] / row.time_s if row.id in apart else 1.0 for row in rows]
    return [
        replace(row, time_s=row.time_s * ratio, high_s=row.high_s * ratio)
        for row, ratio in zip(rows, ratios, strict=True)
    ]


def _rest(rows: list[Scored], count: int, random: Random) -> tuple[float, float]:
    mixed = random.sample(rows, len(rows))
    estimates = Errors(
        corrections.SHARES,
        [
            Observation(_keys(row), _off(row), _deviation(row), corrections.NOISE)
            for row in mixed[:count]
        ],
    )
    known = [(row, estimates.estimate(_keys(row), _deviation(row))) for row in mixed[3:]]
    left = [(_off(row) - each.error, each.deviation) for row, each in known]
    held = mean(abs(off) <= corrections.DEVIATIONS * width for off, width in left)
    return mean(abs(exp(-off) - 1) for off, _ in left), held


def _off(row: Scored) -> float:
    return log((row.measured_time_s or 1.0) / row.time_s)


def _deviation(row: Scored) -> float:
    return log(row.high_s / row.time_s) / corrections.DEVIATIONS


def _keys(row: Scored) -> tuple[Hashable, ...]:
    assert isinstance(row.setting, Configuration)
    return corrections.time_keys(row.setting)


def test_what_no_device_can_do_is_left_out() -> None:
    impossible = measurement(PLAIN, step_time_s=PLAIN.prediction.step_time_s / 4)
    known = corrections.corrections(measured(impossible))
    assert known.left_out == {"faster than the devices can be": 1}
    assert known.predict(PLAIN.configuration) == PLAIN.prediction
