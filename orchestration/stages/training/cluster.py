"""The machines of a training job, and what capacity they come from.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ResourceConfig.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from orchestration.errors import Problem, near
from orchestration.expressions import join
from orchestration.refs import Expression
from orchestration.stages.values import Count, Gibibytes, Model, Seconds, Text


class Machines(Model):
    """Machines of one type."""

    instance_type: Text
    """Their type: ``ml.p4d.24xlarge``."""
    instance_count: Count | None = None
    """``None``: as many as the cluster's ``instance_count``."""


class InstanceGroup(Model):
    """Machines of one type in a heterogeneous cluster.

    https://docs.aws.amazon.com/sagemaker/latest/dg/train-heterogeneous-cluster.html
    """

    name: str = Field(min_length=1, max_length=64)
    """Its name, which channels and strategies refer to."""
    instance_type: Text
    """Type of its machines: ``ml.p4d.24xlarge``."""
    instance_count: Count = 1
    """Number of its machines."""


class ManagedSpot(Model):
    """Spare capacity at a discount; SageMaker starts the job again after an interruption.

    https://docs.aws.amazon.com/sagemaker/latest/dg/model-managed-spot-training.html
    """

    max_wait_s: Seconds
    """Seconds in all, waiting for capacity and training; at least the job's ``max_runtime_s``."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Machines of one type that a job may get."""

    instance_type: str | Expression[Any]
    instance_count: int | Expression[Any]

    @property
    def label(self) -> str | Expression[str]:
        """``2 x ml.p4d.24xlarge``."""
        count, name = self.instance_count, self.instance_type
        if isinstance(count, int) and isinstance(name, str):
            return f"{count} x {name}"
        return join(str(count) if isinstance(count, int) else count, " x ", name)


class Cluster(Model):
    """The machines of a training job: of one type, in groups, or the first type available.

    Give ``instance_type`` (with ``fallbacks``, if you like), ``groups`` or ``preferences``.
    """

    instance_type: Text | None = None
    """``ml.p5.48xlarge``."""
    instance_count: Count | None = None
    """1 if it is not given."""
    fallbacks: tuple[Machines, ...] = Field(default=(), max_length=8)
    """Tried in order where there is no capacity (or no quota) for what comes before: each a job of
    its own, on any kind of capacity, started only after the one before it ended without machines.
    """
    preferences: tuple[Machines, ...] = Field(default=(), max_length=5)
    """Instance types that SageMaker itself tries in order, in one job; not with spot capacity."""
    groups: tuple[InstanceGroup, ...] = Field(default=(), max_length=5)
    """A heterogeneous cluster; the strategy names the group it works on."""
    max_pending_s: int | None = Field(default=None, ge=1800, le=2_419_200)
    """Seconds to wait for machines with accelerators before the job is stopped."""
    training_plan: Text | None = None
    """ARN of a training plan, whose reserved capacity the job runs on."""
    volume_gib: Gibibytes = 30
    """Storage of each instance in GiB, where its type has no local storage of its own."""
    volume_kms_key: Text | None = None
    """Encrypts that storage."""
    keep_alive_s: int | None = Field(default=None, ge=0, le=3600)
    """Seconds that the machines stay, paid, for the next job: a warm pool."""

    def candidates(self) -> tuple[Candidate, ...]:
        """The clusters to request one after the other; instance groups are not candidates."""
        if self.instance_type is None:
            return ()
        return (Candidate(self.instance_type, self._count), *self._counted(self.fallbacks))

    @property
    def label(self) -> str | Expression[str]:
        """The machines of a cluster without candidates: ``1 x ml.g5.xlarge + 2 x ml.c5.xlarge``."""
        between = " + " if self.groups else " or "
        parts = [part for machines in self.machines() for part in (between, machines.label)]
        texts = [part for part in parts[1:] if isinstance(part, str)]
        return "".join(texts) if len(texts) == len(parts) - 1 else join(*parts[1:])

    def machines(self) -> tuple[Candidate, ...]:
        """Every type and count that the job may run on."""
        grouped = [Candidate(group.instance_type, group.instance_count) for group in self.groups]
        return (*self.candidates(), *self._counted(self.preferences), *grouped)

    @property
    def _count(self) -> int | Expression[Any]:
        return 1 if self.instance_count is None else self.instance_count

    def _counted(self, listed: tuple[Machines, ...]) -> Iterator[Candidate]:
        for machines in listed:
            own = machines.instance_count
            yield Candidate(machines.instance_type, self._count if own is None else own)

    def group_facts(self) -> Mapping[str, tuple[str, int]]:
        """The groups whose machines are known before the run: type and count by name."""
        return {
            group.name: (group.instance_type, group.instance_count)
            for group in self.groups
            if isinstance(group.instance_type, str) and isinstance(group.instance_count, int)
        }

    def request(self, candidate: Candidate | None) -> dict[str, Any]:
        """``ResourceConfig``: of a candidate, else of the groups or preferences."""
        if candidate is not None:
            resources: dict[str, Any] = {
                "InstanceType": candidate.instance_type,
                "InstanceCount": candidate.instance_count,
            }
        else:
            resources = self._grouped() if self.groups else self._preferred()
        resources["VolumeSizeInGB"] = self.volume_gib
        optional = {
            "VolumeKmsKeyId": self.volume_kms_key,
            "KeepAlivePeriodInSeconds": self.keep_alive_s,
            "TrainingPlanArn": self.training_plan,
        }
        return resources | {key: value for key, value in optional.items() if value is not None}

    def _grouped(self) -> dict[str, Any]:
        return {
            "InstanceGroups": [
                {
                    "InstanceGroupName": group.name,
                    "InstanceType": group.instance_type,
                    "InstanceCount": group.instance_count,
                }
                for group in self.groups
            ]
        }

    def _preferred(self) -> dict[str, Any]:
        counted = any(machines.instance_count is not None for machines in self.preferences)
        if not counted:
            listed = [{"InstanceType": machines.instance_type} for machines in self.preferences]
            return {"InstancePreferences": listed, "InstanceCount": self._count}
        return {
            # All with their count, or none: SageMaker refuses a mixture.
            "InstancePreferences": [
                {"InstanceType": c.instance_type, "InstanceCount": c.instance_count}
                for c in self.machines()
            ]
        }

    def problems(self) -> Iterator[Problem]:
        """Yield the cluster's own errors."""
        yield from self._ways()
        for where, machines in self._named():
            yield from _type_problem(f"cluster.{where}instance_type", machines.instance_type)
            yield from _count_problem(f"cluster.{where}instance_count", machines.instance_count)
        for name in {group.name for group in self.groups}:
            if sum(group.name == name for group in self.groups) > 1:
                yield Problem("cluster.groups", f"two groups are called {name!r}")
        types = [machines.instance_type for machines in self.preferences]
        if any(types.count(name) > 1 for name in types):
            yield Problem("cluster.preferences", "names an instance type twice")

    def _ways(self) -> Iterator[Problem]:
        ways = {
            "instance_type": self.instance_type is not None,
            "groups": bool(self.groups),
            "preferences": bool(self.preferences),
        }
        given = [name for name, is_given in ways.items() if is_given]
        if not given:
            yield Problem("cluster", "needs instance_type; or groups, or preferences")
        elif len(given) > 1:
            yield Problem("cluster", f"takes one of {' and '.join(given)}, not both")
        if self.fallbacks and self.instance_type is None:
            yield Problem("cluster.fallbacks", "follow an instance_type, which is not given")
        if self.groups and self.instance_count is not None:
            yield Problem("cluster.instance_count", "each of the groups has its own; leave it out")
        counts = [machines.instance_count for machines in self.preferences]
        if counts and self.instance_count is not None and None not in counts:
            yield Problem(
                "cluster.instance_count",
                "each of the preferences has its own; leave out the one or the others",
            )

    def _named(self) -> Iterator[tuple[str, Candidate]]:
        if self.instance_type is not None:
            yield "", Candidate(self.instance_type, self._count)
        for field in ("fallbacks", "preferences", "groups"):
            listed: tuple[Machines | InstanceGroup, ...] = getattr(self, field)
            for index, machines in enumerate(listed):
                count = 1 if machines.instance_count is None else machines.instance_count
                yield f"{field}[{index}].", Candidate(machines.instance_type, count)


def _type_problem(path: str, name: object) -> Iterator[Problem]:
    from orchestration.catalog import training_types

    if not isinstance(name, str) or name in training_types():
        return
    if not name.startswith("ml."):
        whole = f"ml.{name}"
        way = f"write {whole}" if whole in training_types() else "they begin with ml."
        yield Problem(path, f"{name!r} is not a SageMaker instance type; {way}")
    else:
        yield Problem(
            path, f"{name!r} is not an instance type for training{near(name, training_types())}"
        )


def _count_problem(path: str, count: object) -> Iterator[Problem]:
    """Yield the error of a count, which may be a parameter's default."""
    if not isinstance(count, Expression) and not (type(count) is int and count >= 1):
        yield Problem(path, f"expected a whole number from 1 on, got {count!r}")
