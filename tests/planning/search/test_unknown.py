"""Claims about plans for models that no formula describes, all from measurements."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from math import log
from pathlib import Path
from statistics import mean

import pytest
from pydantic import ValidationError

from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.custom import custom
from orchestration.planning.model.hugging_face import from_config
from orchestration.planning.model.measurements import Measurement, model_digest
from orchestration.planning.model.shapes import ModelError
from orchestration.planning.search.answers.plans import Plan, Plans
from orchestration.planning.search.find import find_plans
from orchestration.planning.search.measured.corrections import corrections
from orchestration.planning.search.measured.deciding import deciding
from orchestration.planning.search.measured.known import configuration_of
from orchestration.planning.search.objective import Objective
from orchestration.planning.search.request import PlanRequest, problems_of
from orchestration.planning.search.task import Batch, Task
from orchestration.planning.telling.screen import screen
from tests.planning.search.questions import chosen, measurement, space

PUBLISHED = Path(__file__).parents[2] / "data" / "planner" / "no_formula.csv"
INSTANCES = {"a100-80": "ml.p4de.24xlarge", "a100-40": "ml.p4d.24xlarge", "v100": "ml.p3.16xlarge"}


@dataclass(frozen=True)
class Row:
    """A published training, as a measurement of it."""

    training: str
    task: Task
    measurement: Measurement
    configuration: Configuration
    accelerator: str


def rows() -> Iterator[Row]:
    with PUBLISHED.open() as file:
        for number, row in enumerate(csv.DictReader(file)):
            devices, micro = int(row["gpus"]), int(row["micro_batch"])
            batch = devices * micro * int(row["accumulation"])
            model = custom(float(row["parameters_m"]) * 1e6, row["training"])
            training = Task(
                model=model, sequence=1, samples=10**6, batch=Batch(least=batch, most=batch),
                precision="fp16",
            )  # fmt: skip
            measured = Measurement.model_validate({
                "date": "2024-04-04", "source": "run", "job": f"published-{number}",
                "model": model_digest(model), "instance_type": INSTANCES[row["gpu"]],
                "instance_count": 1,
                "layout": {"family": "replicated", "devices_per_instance": devices},
                "sequence": 1, "global_batch": batch, "micro_batch": micro, "precision": "fp16",
                "optimizer": "adamw", "step_time_s": batch / float(row["samples_per_s"]),
            })  # fmt: skip
            c = configuration_of(training, measured)
            assert c is not None
            yield Row(row["training"], training, measured, c, row["gpu"])


def predicted(known: Row, other: Row) -> tuple[float, bool]:
    """Return the error of a prediction from one measurement, and whether its interval holds."""
    task = replace(known.task, measurements=(known.measurement,))
    p = corrections(task).predict(other.configuration)
    seconds = other.measurement.step_time_s
    assert seconds is not None
    return abs(log(p.step_time_s / seconds)), p.low_s <= seconds <= p.high_s


@pytest.mark.parametrize(
    ("same_accelerator", "mean_error", "held"), [(True, 0.12, 0.78), (False, 0.26, 0.85)]
)
def test_one_measurement_tells_the_other_times_of_a_published_training(
    same_accelerator: bool, mean_error: float, held: float
) -> None:
    pairs = [
        predicted(known, other)
        for known, other in permutations(rows(), 2)
        if known.training == other.training
        and (known.accelerator == other.accelerator) is same_accelerator
    ]
    assert len(pairs) > 180
    assert mean(error for error, _ in pairs) < mean_error
    assert mean(inside for _, inside in pairs) >= held


RESNET = custom(25.6e6, "resnet-50")
TASK = Task(
    model=RESNET, sequence=1, samples=1_281_167 * 90, batch=Batch(least=256, most=256),
)  # fmt: skip
SPACE = space("ml.g5.*", "ml.g6.xlarge", "ml.p4d.24xlarge", counts=(1, 2))


def plans(*measurements: Measurement) -> Plans:
    return find_plans(replace(TASK, measurements=measurements), SPACE)


def of(answer: Plans, name: str, count: int) -> Plan:
    """Return the best plan of a cluster, chosen or not."""
    [plan] = [p for p in answer.contenders if (p.instance_type, p.instance_count) == (name, count)]
    return plan


def candidate(name: str, count: int = 1) -> Measurement:
    """A measurement of the configuration that is tried first on a cluster."""
    return measurement(of(plans(), name, count), step_time_s=0.5, peak_memory_gib=12.0)


def test_nothing_is_planned_before_anything_is_measured() -> None:
    answer = plans()
    assert answer.chosen is None
    assert "orchestrate probe" in answer.missing[0]
    first = deciding(answer, 3)
    accelerators = [plan.configuration.machine.accelerator for plan in first]
    assert sorted(accelerators) == ["a100-40", "a10g", "l4"]


def test_the_choice_is_among_accelerators_that_were_measured() -> None:
    answer = plans(candidate("ml.g5.xlarge"))
    best = chosen(answer)
    assert best.instance_type == "ml.g5.xlarge"
    assert best.prediction.step_time_s == pytest.approx(0.5, rel=0.02)
    assert best.mfu is None
    step = best.prediction
    assert step.high_s / step.low_s < 1.25
    other = of(answer, "ml.p4d.24xlarge", 1)
    assert other.prediction.high_s / other.prediction.low_s > 2
    text = "\n".join(screen(answer, "train"))
    assert "measured    1 x ml.g5.xlarge, data parallel, 256 at a time: steps of 0.5 s" in text
    assert "peak" not in text


def test_computing_is_divided_by_replicas_and_exchanging_gradients_is_not() -> None:
    whole = candidate("ml.g5.12xlarge")
    answer = plans(whole)
    one, two = of(answer, "ml.g5.12xlarge", 1), of(answer, "ml.g5.12xlarge", 2)
    assert two.configuration.micro_batch == whole.micro_batch // 2
    time = two.prediction.time
    assert time.forward == pytest.approx(one.prediction.time.forward / 2, rel=0.02)
    assert time.data > 0
    assert 0.25 < two.prediction.step_time_s < 0.5


def test_memory_grows_with_the_samples_of_a_device() -> None:
    answer = plans(candidate("ml.g5.12xlarge"))
    one = of(answer, "ml.g5.12xlarge", 1).prediction.memory
    two = of(answer, "ml.g5.12xlarge", 2).prediction.memory
    assert one.need == pytest.approx(12.0, rel=0.01)
    assert two.activations == pytest.approx(one.activations / 2)
    assert two.states == one.states


def test_what_ran_out_of_memory_is_divided_into_more_micro_batches() -> None:
    whole = candidate("ml.g5.xlarge").model_copy(
        update={"step_time_s": None, "peak_memory_gib": None, "out_of_memory": True}
    )
    answer = plans(whole)
    assert of(answer, "ml.g5.xlarge", 1).configuration.micro_batch < 256
    assert of(answer, "ml.p4d.24xlarge", 1).configuration.micro_batch == 32
    assert all(plan.configuration.micro_batch < 256 for plan in deciding(answer, 5))


def test_what_ran_fits_again() -> None:
    full = candidate("ml.g5.xlarge").model_copy(update={"peak_memory_gib": 23.9})
    assert chosen(plans(full)).configuration.micro_batch == 256


def test_another_name_is_another_model() -> None:
    known = candidate("ml.g5.xlarge")
    renamed = replace(TASK, model=custom(25.6e6, "at 384 pixels"), measurements=(known,))
    answer = find_plans(renamed, SPACE)
    assert answer.chosen is None
    assert corrections(renamed).left_out == {"of another model": 1}


def request(**model: object) -> dict[str, object]:
    return {"model": model, "batch": {"samples": 8}, "data": {"samples": 80}}


def test_a_sample_of_a_custom_model_needs_no_sequence() -> None:
    asked = PlanRequest.model_validate(request(custom=True, parameters=1e6))
    assert asked.sequence == 1
    assert asked.task().model.kind == "custom"


def test_a_sample_of_a_vision_transformer_is_as_long_as_its_image() -> None:
    config = {"model_type": "vit", "image_size": 384}
    asked = PlanRequest.model_validate(request(config=config))
    assert asked.sequence == 24 * 24 + 1
    given = PlanRequest.model_validate({**request(config=config), "sequence": 50})
    assert given.sequence == 50


@pytest.mark.parametrize(
    ("model", "path", "message"),
    [
        ({"parameters": 1e6}, "sequence", "is missing"),
        ({"custom": True}, "model", "custom: give parameters with it, and no other sizes"),
        (
            {"custom": True, "config": {}}, "model",
            "custom: give parameters with it, and no other sizes",
        ),
        ({"custom": True, "parameters": 2}, "model", "parameters: expected 7 or more"),
        (
            {"custom": True, "parameters": 1e6, "vocabulary": 9, "gated": False}, "model",
            "custom: vocabulary and gated would mean nothing beside it",
        ),
        (
            {"config": {"model_type": "vit"}, "kv_heads": 4}, "model",
            "config: kv_heads would mean nothing beside it",
        ),
        ({"parameters": 1e9, "ffn": 4}, "model", "parameters: ffn would mean nothing beside it"),
    ],
)  # fmt: skip
def test_requests_that_say_too_little_are_refused(
    model: dict[str, object], path: str, message: str
) -> None:
    with pytest.raises(ValidationError) as raised:
        PlanRequest.model_validate(request(**model))
    [problem] = problems_of(raised.value)
    assert (problem.path, problem.message) == (path, message)


def test_a_configuration_without_a_formula_names_the_way_out() -> None:
    with pytest.raises(ModelError, match=r"custom: true, parameters: ….*orchestrate probe"):
        from_config({"model_type": "resnet", "num_channels": 3, "depths": [3, 4, 6, 3]})


def test_limits_reject_nothing_of_which_no_step_is_known() -> None:
    objective = Objective(aim="cheapest", deadline_s=60.0, budget_usd=1.0)
    answer = find_plans(TASK, SPACE, objective)
    assert answer.missing == plans().missing
    assert answer.objective == objective
    assert len(deciding(answer, 3)) == 3


def test_a_deadline_that_no_measured_cluster_keeps_asks_for_another_accelerator() -> None:
    known = candidate("ml.g5.xlarge")
    task = replace(TASK, measurements=(known,))
    answer = find_plans(task, SPACE, Objective(aim="cheapest", deadline_s=12 * 3600))
    assert chosen(answer).instance_type != "ml.g5.xlarge"
    assert chosen(answer).configuration.machine.accelerator == "a10g"
    answer = find_plans(task, SPACE, Objective(aim="cheapest", deadline_s=3 * 3600))
    assert answer.chosen is None
    assert deciding(answer, 1)[0].instance_type == "ml.p4d.24xlarge"


def test_limits_that_no_measured_cluster_keeps_are_explained() -> None:
    task = replace(TASK, measurements=(candidate("ml.g5.xlarge"),))
    answer = find_plans(task, SPACE, Objective(aim="cheapest", deadline_s=60))
    assert answer.chosen is None
    assert answer.missing[0].startswith("the fastest plan, 2 x ml.g5.48xlarge, may take ")
