from __future__ import annotations

import re
import subprocess
import sys
from datetime import date

import pytest

from orchestration.catalog import (
    Instance,
    accelerators,
    instance,
    instances,
    price,
    prices,
    rate,
    rates,
    sources,
    training_types,
)

INSTANCES = list(instances().values())
WITH_DEVICES = [one for one in INSTANCES if one.devices]


def named(one: Instance) -> str:
    return one.name


def test_names_are_those_of_botocore() -> None:
    from botocore.session import Session

    shape = Session().get_service_model("sagemaker").shape_for("TrainingInstanceType")
    # A newer botocore knows more; what it no longer knows has to leave the table.
    assert training_types() <= set(shape.enum)


def test_every_type_that_trains_has_a_row() -> None:
    rows = {one.name for one in INSTANCES if one.training}
    assert training_types() - rows == set()


def test_only_types_that_train_say_so() -> None:
    assert {one.name for one in INSTANCES if one.training} <= training_types()


def test_unknown_types_are_none() -> None:
    assert instance("ml.p99.48xlarge") is None
    assert price("ml.p99.48xlarge") is None


@pytest.mark.parametrize("one", INSTANCES, ids=named)
def test_a_row_holds_together(one: Instance) -> None:
    assert (one.accelerator is None) == (one.devices == 0) == (one.accelerator_chips == 0)
    assert (one.device_memory_gib is None) == (one.devices == 0)
    for value in (one.device_memory_gib, one.vcpus, one.host_memory_gib, one.network_gbps):
        assert value is None or value > 0
    assert one.source in sources()
    # One device has no peer; several on one chip or board do.
    assert one.interconnect_gb_per_s is None or one.devices > 1


@pytest.mark.parametrize("one", WITH_DEVICES, ids=named)
def test_devices_are_those_of_the_chips(one: Instance) -> None:
    assert one.accelerator is not None
    assert one.devices == one.accelerator_chips * accelerators()[one.accelerator].devices_per_chip


@pytest.mark.parametrize("one", accelerators().values(), ids=lambda one: one.key)
def test_a_lower_precision_is_no_slower(one: object) -> None:
    from orchestration.catalog import Accelerator

    assert isinstance(one, Accelerator)
    rates = [one.fp32_tflops, one.tf32_tflops, one.fp16_tflops, one.fp8_tflops]
    known = [rate for rate in rates if rate is not None]
    assert known == sorted(known)
    assert one.source in sources()


@pytest.mark.parametrize(
    ("name", "devices"),
    [
        ("ml.g5.12xlarge", 4),
        ("ml.p2.16xlarge", 16),
        ("ml.p4d.24xlarge", 8),
        ("ml.trn1.2xlarge", 2),
        ("ml.trn1.32xlarge", 32),
        ("ml.m5.large", 0),
    ],
)
def test_devices_are_processes(name: str, devices: int) -> None:
    found = instance(name)
    assert found is not None
    assert found.devices == devices


def test_trainium2_counts_as_the_training_toolkit_does() -> None:
    environment = pytest.importorskip("sagemaker_training.environment")
    found = instance("ml.trn2.48xlarge")
    assert found is not None
    assert environment.num_neurons(found.name) == found.devices


def test_larger_sizes_of_a_family_have_no_fewer_cores() -> None:
    # Sizes count in multiples of xlarge; p3dn, p4d and the like come in one size.
    for one in INSTANCES:
        for other in INSTANCES:
            if one.family == other.family and multiple(one) < multiple(other):
                assert (one.vcpus or 0) <= (other.vcpus or sys.maxsize), (one.name, other.name)


def multiple(one: Instance) -> float:
    matched = re.fullmatch(r"(\d*)xlarge", one.size)
    return {"medium": 0.25, "large": 0.5}[one.size] if matched is None else int(matched[1] or 1)


def test_prices_are_of_known_types_with_known_sources() -> None:
    assert set(prices()) <= set(instances())
    assert {one.source for one in prices().values()} <= set(sources())
    assert all(one.usd_per_hour > 0 for one in prices().values())


def test_a_price_on_sagemaker_is_above_the_same_machine_on_ec2() -> None:
    for one in prices().values():
        if one.ec2_usd_per_hour is not None:
            assert 1.1 < one.usd_per_hour / one.ec2_usd_per_hour < 1.5, one


def test_estimates_say_what_of() -> None:
    assert all(one.note for one in prices().values() if one.estimate)


def test_a_price_in_another_region_is_an_estimate() -> None:
    here = price("ml.p4d.24xlarge")
    there = price("ml.p4d.24xlarge", "eu-west-1")
    assert here is not None
    assert there is not None
    assert not here.estimate
    assert there.estimate
    assert there.region == "eu-west-1"
    assert here.region in there.note
    assert there.usd_per_hour == here.usd_per_hour


def test_rates_are_positive_and_have_known_sources() -> None:
    every = [one for regions in rates().values() for one in regions.values()]
    assert all(one.usd > 0 and one.source in sources() for one in every)
    assert all(one.note for one in every if one.estimate)


def test_a_rate_in_another_region_is_an_estimate() -> None:
    there = rate("datasync.BASIC.gb", "eu-west-1")
    assert there is not None
    assert there.estimate
    assert "ap-northeast-1" in there.note
    assert rate("datasync.UNKNOWN", "eu-west-1") is None


def test_dates_are_dates() -> None:
    told = [one.date for one in prices().values() if one.date]
    told += [one.date for regions in rates().values() for one in regions.values() if one.date]
    told += [one.read for one in sources().values()]
    for one in told:
        assert date.fromisoformat(one).year >= 2021


def test_every_source_is_used() -> None:
    used = {one.source for one in INSTANCES} | {one.source for one in prices().values()}
    used |= {one.source for one in accelerators().values()}
    used |= {one.source for regions in rates().values() for one in regions.values()}
    assert set(sources()) - used == {"botocore-1.43.117"}


def test_reads_within_five_milliseconds() -> None:
    code = (
        "import csv, importlib.resources, time\n"
        "from orchestration import catalog\n"
        "times = []\n"
        "for _ in range(9):\n"
        "    for table in (catalog.instances, catalog.prices, catalog.accelerators):\n"
        "        table.cache_clear()\n"
        "    start = time.process_time()\n"
        "    catalog.instances(), catalog.prices(), catalog.accelerators()\n"
        "    times.append(time.process_time() - start)\n"
        "print(min(times))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert float(done.stdout) < 0.005
