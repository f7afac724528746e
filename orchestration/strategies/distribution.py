"""The ``distribution=`` of the SageMaker Python SDK, read as a strategy.

https://sagemaker.readthedocs.io/en/v2.257.1/frameworks/pytorch/using_pytorch.html#distributed-pytorch-training
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

from pydantic import TypeAdapter, ValidationError

from orchestration.errors import PipelineError, Problem, near
from orchestration.phrases import phrase
from orchestration.strategies.facts import key
from orchestration.strategies.smp import INTERNAL_PARAMETERS, SMPv1, SMPv2
from orchestration.strategies.smp_rules import own_rules
from orchestration.strategies.strategy import Strategy
from orchestration.strategies.support import deciding

_Options: TypeAlias = Mapping[str, object]

_LAUNCHERS: Mapping[str, tuple[str, ...]] = {
    "mpi": ("enabled", "processes_per_host", "custom_mpi_options"),
    "torch_distributed": ("enabled",),
    "pytorchddp": ("enabled", "custom_mpi_options"),
    "parameter_server": ("enabled",),
    "multi_worker_mirrored_strategy": ("enabled",),
}
_LIBRARIES: Mapping[str, tuple[str, ...]] = {
    "dataparallel": ("enabled", "custom_mpi_options"),
    "modelparallel": ("enabled", "parameters"),
}
_KINDS: Mapping[frozenset[str], str] = {
    frozenset[str](): "none",
    frozenset(["mpi"]): "mpi",
    frozenset(["torch_distributed"]): "torch_distributed",
    frozenset(["pytorchddp"]): "pytorchddp",
    frozenset(["parameter_server"]): "parameter_server",
    frozenset(["multi_worker_mirrored_strategy"]): "multi_worker_mirrored",
    frozenset(["dataparallel"]): "smddp",
    frozenset(["modelparallel", "mpi"]): "smp_v1",
    frozenset(["modelparallel", "torch_distributed"]): "smp_v2",
}
_TRUE = ("true", "True")
"""Text that tutorials write for true, and that the SDK takes."""
_WITH_GROUP = frozenset(["mpi", "smddp", "smp_v1", "pytorchddp"])
_GROUP_DROPPED = frozenset(["torch_distributed"])
"""The SDK requires a group but does not send it; :func:`.findings` warns of that."""


@cache
def _adapter() -> TypeAdapter[Strategy]:
    return TypeAdapter(Strategy)


def from_distribution(distribution: Mapping[str, object], *, framework: str | None) -> Strategy:
    """Read the ``distribution=`` of an estimator of SageMaker's SDK as a strategy.

    ``framework`` is the estimator's: ``pytorch``, ``huggingface``, ``tensorflow``, ``mxnet``;
    ``None`` if it has none. ``mpi`` is read as :class:`.MPI`, which Horovod runs over too. Options
    that the SDK silently drops (a strategy without ``enabled``, a second launcher, a misspelt
    parameter) are errors here.

    >>> from_distribution({"torch_distributed": {"enabled": True}}, framework="pytorch")
    TorchDistributed(kind='torch_distributed', processes_per_host=None)

    Raises :class:`~orchestration.errors.PipelineError` with every problem, each at its path below
    ``distribution``.
    """
    reading = _Reading()
    strategy = reading.strategy(distribution, framework)
    if strategy is None or reading.problems:
        raise PipelineError(reading.problems)
    return strategy


@dataclass(slots=True)
class _Reading:
    problems: list[Problem] = field(default_factory=list)
    enabled: dict[str, _Options] = field(default_factory=dict)
    """The enabled options, by name."""

    def wrong(self, path: str, message: str) -> None:
        self.problems.append(Problem(f"distribution.{path}".rstrip("."), message))

    def strategy(self, value: object, framework: str | None) -> Strategy | None:
        options = self.mapping("", value)
        known = [*_LAUNCHERS, "smdistributed", "instance_groups"]
        for name, value in options.items():
            if name in _LAUNCHERS:
                self.switch(name, value, _LAUNCHERS[name])
            elif name == "smdistributed":
                self.libraries(value)
            elif name == "pytorchxla":
                self.wrong(name, "is for SageMaker's Training Compiler; use torch_distributed")
            elif name != "instance_groups":
                self.wrong(name, f"unknown strategy{near(name, known)}")
        kind = self.kind()
        group = self.group(options.get("instance_groups"), kind, framework)
        return None if kind is None else self.built(kind, group, framework)

    def mapping(self, path: str, value: object) -> _Options:
        if isinstance(value, Mapping):
            return {str(name): option for name, option in value.items()}
        self.wrong(path, f"expected a mapping, got {value!r}")
        return {}

    def switch(self, path: str, value: object, known: Iterable[str]) -> None:
        """Record a strategy if it is enabled."""
        options = self.mapping(path, value)
        for name in options:
            if name not in known:
                self.wrong(f"{path}.{name}", f"unknown option{near(name, known)}")
            elif options[name] is None and name != "enabled":
                self.wrong(f"{path}.{name}", "is None; remove it")
        if not isinstance(value, Mapping):
            return
        if "enabled" not in options:
            self.wrong(path, "lacks enabled, so the SDK silently ignores it; add enabled: true")
        elif not isinstance(options["enabled"], bool) and options["enabled"] not in _TRUE:
            taken = "any text" if isinstance(options["enabled"], str) else "it"
            reason = f"; the SDK takes {taken} for true" if options["enabled"] else ""
            got = f"expected true or false, got {options['enabled']!r}{reason}"
            self.wrong(f"{path}.enabled", got)
        if options.get("enabled", True):
            self.enabled[path.rpartition(".")[2]] = options

    def libraries(self, value: object) -> None:
        options = self.mapping("smdistributed", value)
        if len(options) > 1:
            self.wrong("smdistributed", f"holds {' and '.join(options)}; keep one of them")
        for name, library in options.items():
            path = f"smdistributed.{name}"
            if name in _LIBRARIES:
                self.switch(path, library, _LIBRARIES[name])
            else:
                self.wrong(path, f"unknown library{near(name, _LIBRARIES)}")

    def kind(self) -> str | None:
        kind = _KINDS.get(frozenset(self.enabled))
        if self.enabled.keys() == {"modelparallel"}:
            self.wrong(
                "smdistributed.modelparallel",
                "lacks its launcher, and the SDK then starts the script once per host; add mpi "
                "(version 1 of the library) or torch_distributed (version 2)",
            )
        elif self.enabled.keys() == {"dataparallel", "torch_distributed"}:
            self.wrong(
                "",
                "enables dataparallel and torch_distributed at once, of which SageMaker's PyTorch "
                "container starts torchrun; keep torch_distributed alone, whose script can import "
                "smdistributed.dataparallel.torch.torch_smddp and use the backend smddp, or "
                "smdistributed alone, which starts SMDDP over MPI",
            )
        elif kind is None and not self.enabled.keys() >= _LIBRARIES.keys():
            names = " and ".join(self.enabled)
            self.wrong("", f"enables {names} at once, of which SageMaker starts one; keep one")
        return kind

    def group(self, value: object, kind: str | None, framework: str | None) -> str | None:
        if value is None or value in ([], ()):
            return None
        if not isinstance(value, list | tuple):
            self.wrong("instance_groups", f"expected a list of one group, got {value!r}")
            return None
        names = [getattr(each, "instance_group_name", each) for each in value]
        if len(names) > 1:
            self.wrong("instance_groups", f"names {len(names)} groups; keep the one that trains")
            return None
        if not isinstance(names[0], str):
            self.wrong("instance_groups", f"expected the name of a group, got {names[0]!r}")
            return None
        if kind is None or kind in _GROUP_DROPPED or (kind, framework) == _DROPPED_BY_HUGGING_FACE:
            return None
        if kind not in _WITH_GROUP:
            self.wrong(
                "instance_groups",
                "goes with mpi, pytorchddp or smdistributed, which start on a group; leave it out",
            )
            return None
        return str(names[0])

    def built(self, kind: str, group: str | None, framework: str | None) -> Strategy | None:
        fields: dict[str, Any] = {"kind": kind}
        for name, options in self.enabled.items():
            rest = {k: v for k, v in options.items() if k not in ("enabled", "parameters")}
            known = {*_LAUNCHERS.get(name, ()), *_LIBRARIES.get(name, ())}
            fields |= {k: v for k, v in rest.items() if k in known}
        if "modelparallel" in self.enabled:
            fields |= self.parameters(kind)
        if group is not None:
            fields["instance_group"] = group
        try:
            strategy = _adapter().validate_python(fields)
        except ValidationError as error:
            for each in error.errors():
                expected = "text" if each["type"] == "string_type" else None
                self.wrong(self.place(str(each["loc"][-1])), phrase(each, expected=expected))
            return None
        for path, message in _certain(strategy, framework):
            self.wrong(self.place(path), message)
        return strategy

    def parameters(self, kind: str) -> dict[str, object]:
        path = "smdistributed.modelparallel.parameters"
        parameters = self.enabled["modelparallel"].get("parameters", {})
        if isinstance(parameters, str):
            self.wrong(path, f"is the path of a file ({parameters}); give what it holds")
            return {}
        model = SMPv1 if kind == "smp_v1" else SMPv2
        own = [name for name in model.model_fields if name not in model.own_fields]
        known: dict[str, object] = {}
        internal: dict[str, object] = {}
        for name, value in self.mapping(path, parameters).items():
            if name in own:
                known[name] = value
            elif model is SMPv1 and name in INTERNAL_PARAMETERS:
                internal[name] = value
            else:
                self.wrong(
                    f"{path}.{name}",
                    f"is no parameter of {kind} that is known here (one that the library has goes "
                    f"into extra_parameters of the strategy){near(name, own)}",
                )
        return {**known, "extra_parameters": internal}

    def place(self, name: str) -> str:
        """Return the path of an option or a parameter below ``distribution``."""
        for owner, options in self.enabled.items():
            path = f"smdistributed.{owner}" if owner in _LIBRARIES else owner
            inner = options.get("parameters")
            if isinstance(inner, Mapping) and name in inner:
                return f"{path}.parameters.{name}"
            if not name or name in options:
                return f"{path}.{name}" if name else path
        return f"smdistributed.modelparallel.parameters.{name}"


def _certain(strategy: Strategy, framework: str | None) -> Iterator[tuple[str, str]]:
    """Find fields that can't work with a framework, and the message for each."""
    base = None if framework == "huggingface" else framework
    facts = {"framework": base, "estimator": framework, "strategy": strategy.kind}
    for rule in deciding(key(strategy), facts):
        if rule.verdict == "no":
            yield "", rule.message(facts)
    for finding in own_rules(strategy, base):
        if finding.certain:
            yield finding.path.removeprefix("strategy."), finding.message


_DROPPED_BY_HUGGING_FACE = ("pytorchddp", "huggingface")
