"""Lines of endpoints: those that stay, by the month, and those that a run tries a model on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from orchestration.catalog import rate
from orchestration.expressions import Tree, join
from orchestration.graph import Call, Guarded, Require, Step, all_steps, stage_of
from orchestration.graph.steps import Graph
from orchestration.graph.walking import reads
from orchestration.pricing.jobs import instance_rate
from orchestration.pricing.knowing import Known, Times, times
from orchestration.pricing.lasting import hours
from orchestration.pricing.lines import HOURS_A_MONTH, Line

CREATES: Final = ("sagemaker", "CreateEndpoint")
CONFIGURES: Final = ("sagemaker", "CreateEndpointConfig")
_CONFIG: Final = "EndpointConfigName"
_DIMENSION: Final = "sagemaker:variant:DesiredInstanceCount"
"""The scaling of instances, which cost; copies of inference components are on those."""
_ENDS: Final = ("Min", "Max")
_MIB_A_GIB: Final = 1024.0


@dataclass(frozen=True, slots=True)
class Making:
    """The steps by which a stage comes to an endpoint that outlives the run."""

    creation: str
    settled: str | None
    """The step that waits until nothing changes the endpoint, if there is one."""
    required: str | None
    """The step that fails unless the endpoint serves then."""
    is_shared: bool
    """True if an endpoint of components, which is left as it is where it exists."""

    @classmethod
    def of(cls, creation: Call, steps: list[Step], *, is_shared: bool) -> Making:
        """Find the steps that follow a creation."""
        following = steps[steps.index(creation) + 1 :]
        own = [each for each in following if stage_of(each.name) == stage_of(creation.name)]
        waits = [
            each.name
            for each in own
            if isinstance(each, Call) and each.until and _is(each, "DescribeEndpoint")
        ]
        needs = [each for each in own if isinstance(each, Require)]
        # An update waits for those of others, too, and requires nothing then.
        required = ((wait, need.name) for wait in waits for need in needs if wait in reads(need))
        settled, need = next(required, (next(iter(waits), None), None))
        return cls(creation.name, settled, need, is_shared)


class Endpoints:
    """The endpoints of a graph, by the configurations that they are made from."""

    def __init__(self, graph: Graph) -> None:
        steps = [*all_steps(graph)]
        calls = [step for step in steps if isinstance(step, Call)]
        self._configs = [
            call for call in calls if (call.operation.service, call.operation.name) == CONFIGURES
        ]
        self._targets = {
            stage_of(call.name): call.operation.request
            for call in calls
            if call.operation.name == "RegisterScalableTarget"
            and call.operation.request.get("ScalableDimension") == _DIMENSION
        }
        self._scheduled: list[tuple[str, Any]] = [
            (stage_of(call.name), call.operation.request.get("ScalableTargetAction") or {})
            for call in calls
            if call.operation.name == "PutScheduledAction"
        ]
        tried = {
            step.acquire.name
            for step in steps
            if isinstance(step, Guarded) and _is(step.acquire, "CreateEndpoint")
        }
        standing = [
            call
            for call in calls
            if (_is(call, "CreateEndpoint") or _is(call, "UpdateEndpoint"))
            and call.name not in tried
        ]
        self._names: dict[str, Any] = {
            stage_of(call.name): call.operation.request.get("EndpointName") for call in standing
        }
        self._standing = [
            config
            for config in self._configs
            if any(_same(config, call.operation.request.get(_CONFIG)) for call in standing)
        ]

        shared = {stage_of(each.name) for each in self._standing if _is_shared(each)}
        self.makings = {
            stage_of(call.name): Making.of(call, steps, is_shared=stage_of(call.name) in shared)
            for call in reversed(standing)
        }
        """The steps that lead to each endpoint that stays, by stage."""

    def name(self, config: Call, known: Known) -> Tree:
        """Return the name of the endpoint that a configuration is for, if several may name it."""
        name = self._names.get(stage_of(config.name)) if _is_shared(config) else None
        return known.text(name) or name

    @property
    def stages(self) -> frozenset[str]:
        """The stages whose endpoints stay after a run."""
        return frozenset(stage_of(config.name) for config in self._standing)

    def monthly(self, config: Call, known: Known, often: Times) -> Iterator[Line]:
        """Yield the lines of the endpoint that stays after a run, if a configuration is its own."""
        if config not in self._standing:
            return
        stage = stage_of(config.name)
        for variant in _variants(config):
            if "ServerlessConfig" in variant:
                lines = _serverless(stage, variant["ServerlessConfig"], known)
            else:
                alone = len(_variants(config)) == 1
                lines = self._instances(stage, variant, known, alone=alone)
            for line in lines:
                quantity = often * Times(line.expected, line.most)
                yield replace(line, expected=quantity.expected, most=quantity.most)

    def _instances(
        self, stage: str, variant: Mapping[str, Any], known: Known, *, alone: bool
    ) -> Iterator[Line]:
        count = known.number(variant.get("InitialInstanceCount"))
        often, notes = Times(count, count), ["each hour of the month"]
        managed = variant.get("ManagedInstanceScaling")
        if managed is not None:
            often = Times(*(known.number(managed.get(f"{end}InstanceCount")) for end in _ENDS))
            notes.append("expected the fewest, at most the most instances, which SageMaker manages")
        target = self._targets.get(stage)
        if target is not None and (alone or self._is_scaled(stage, variant, target)):
            often = self._scaled(stage, target, known)
            notes.append("expected the fewest, at most the most instances of its scaling")
        for kind, share in _shares(variant, often, known):
            yield Line(
                stage=stage,
                what=f"endpoint, {_range(often)} x {kind or '?'}",
                rate=None if kind is None else instance_rate(kind, known),
                expected=times(share.expected, HOURS_A_MONTH),
                most=times(share.most, HOURS_A_MONTH),
                period="month",
                lacks=_lacks(kind, known),
                notes=tuple(notes),
            )

    def _is_scaled(self, stage: str, variant: Mapping[str, Any], target: Mapping[str, Any]) -> bool:
        endpoint, name = self._names.get(stage, ""), str(variant.get("VariantName"))
        return bool(target.get("ResourceId") == join("endpoint/", endpoint, "/variant/", name))

    def _scaled(self, stage: str, target: Mapping[str, Any], known: Known) -> Times:
        """Return the fewest and the most instances of a scaling, whatever the time of day."""
        bounds = [target, *(action for name, action in self._scheduled if name == stage)]
        least = [known.number(each.get("MinCapacity")) for each in bounds]
        most = [known.number(each.get("MaxCapacity")) for each in bounds]
        return Times(
            None if None in least else min(number for number in least if number is not None),
            None if None in most else max(number for number in most if number is not None),
        )

    def tried(
        self, guard: Guarded, known: Known, often: Times, *, lived: float | None = None
    ) -> Iterator[Line]:
        """Yield the line of an endpoint that lives as long as a guard's body, or lived so long."""
        name = guard.acquire.operation.request.get(_CONFIG)
        after = hours(guard.cleanup, known)
        body = hours(guard.body, known)
        life = None if body.most is None or after.most is None else body.most + after.most
        for config in self._configs:
            if not _same(config, name):
                continue
            for variant in _variants(config):
                count = known.number(variant.get("InitialInstanceCount"))
                if "ServerlessConfig" in variant:
                    continue  # A few requests.
                quantity = often * (
                    Times(times(body.expected, count), times(life, count))
                    if lived is None
                    else Times(times(lived, count), times(lived, count))
                )
                for kind, share in _shares(variant, quantity, known):
                    yield Line(
                        stage=stage_of(guard.name),
                        what=f"temporary endpoint, {_range(Times(count, count))} x {kind or '?'}",
                        rate=None if kind is None else instance_rate(kind, known),
                        expected=share.expected,
                        most=share.most,
                        lacks=_lacks(kind, known),
                        notes=("without its creation",),
                    )


def _shares(
    variant: Mapping[str, Any], quantity: Times, known: Known
) -> Iterator[tuple[str | None, Times]]:
    """Yield the instance types of a variant that are paid: the first as expected, the dearest."""
    pools = variant.get("InstancePools") or [variant]
    kinds = [known.text(pool.get("InstanceType")) for pool in pools]
    first, dearest = kinds[0], max(kinds, key=lambda kind: _hourly(kind, known))
    if first == dearest:
        yield first, quantity
        return
    yield first, Times(quantity.expected, 0.0)
    yield dearest, Times(0.0, quantity.most)


def _hourly(kind: str | None, known: Known) -> float:
    found = None if kind is None else instance_rate(kind, known)
    return float("inf") if found is None else found.usd


def _serverless(stage: str, config: Mapping[str, Any], known: Known) -> Iterator[Line]:
    memory = known.number(config.get("MemorySizeInMB"))
    gib = None if memory is None else memory / _MIB_A_GIB
    busy = known.assumptions.of(stage, "hours")
    seconds = None if busy is None else busy * 3600
    what = f"serverless endpoint, {'?' if gib is None else f'{gib:g}'} GiB"
    yield Line(
        stage=stage,
        what=what,
        rate=rate("serverless", known.region),
        expected=times(seconds, gib),
        most=times(seconds, gib),
        period="month",
        lacks=""
        if busy is not None
        else f"how many hours a month it answers; --assume {stage}.hours=NUMBER",
    )
    if config.get("ProvisionedConcurrency"):
        yield Line(
            stage=stage,
            what=f"{what}, kept warm",
            rate=None,
            expected=None,
            most=None,
            period="month",
            lacks="no price is known for provisioned concurrency",
        )


def _range(often: Times) -> str:
    low, high = ("?" if n is None else f"{n:g}" for n in (often.expected, often.most))
    return low if low == high else f"{low} to {high}"


def _lacks(kind: str | None, known: Known) -> str:
    if kind is None:
        return "its machines come from parameters; give them with -p"
    return "" if instance_rate(kind, known) else f"no price is known for {kind}"


def _variants(config: Call) -> list[Mapping[str, Any]]:
    request: Any = config.operation.request
    kinds = ("ProductionVariants", "ShadowProductionVariants")
    return [variant for kind in kinds for variant in request.get(kind) or ()]


def _is_shared(config: Call) -> bool:
    """Return whether a configuration has no model: components are put on its endpoint."""
    return not any("ModelName" in variant for variant in _variants(config))


def _same(config: Call, name: Tree) -> bool:
    return config.operation.request.get(_CONFIG) == name


def _is(call: Call, operation: str) -> bool:
    return (call.operation.service, call.operation.name) == ("sagemaker", operation)
