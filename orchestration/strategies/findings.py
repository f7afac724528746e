"""Problems of a strategy, known or possible, found before anything is paid for."""

from __future__ import annotations

from collections.abc import Iterator

from orchestration.strategies import containers
from orchestration.strategies.facts import facts, key
from orchestration.strategies.groups import group_findings
from orchestration.strategies.models import NoStrategy
from orchestration.strategies.mpi_options import mpi_findings
from orchestration.strategies.processes import process_findings
from orchestration.strategies.smp_rules import own_rules
from orchestration.strategies.strategy import Strategy
from orchestration.strategies.support import Rule, deciding
from orchestration.strategies.use import Finding, Use

_PATHS = {"entry_point": "source.entry_point", "image": "image"}


def findings(strategy: Strategy, use: Use) -> list[Finding]:
    """Find everything that is certain to fail, or not known to work.

    Facts missing from ``use`` are not judged. A certain finding has a source or a measurement; the
    others are warnings.

    >>> from orchestration.strategies import SMDDP, Use
    >>> [found] = findings(SMDDP(), Use(framework="pytorch", instance_types=("ml.g5.48xlarge",)))
    >>> found.certain, found.message.partition(";")[0]
    (True, 'SMDDP does not run on ml.g5.48xlarge')
    """
    return list(
        dict.fromkeys(
            [
                *_unsupported(strategy, use),
                *group_findings(strategy, use),
                *mpi_findings(strategy, use),
                *own_rules(strategy, use.base or use.framework),
                *process_findings(strategy, use),
            ]
        )
    )


def _unsupported(strategy: Strategy, use: Use) -> Iterator[Finding]:
    for known in facts(strategy, use):
        for rule in deciding(key(strategy), known):
            if rule.verdict != "yes":
                path = _PATHS.get(rule.subject, "strategy")
                yield Finding(path, rule.message(known), rule.verdict == "no")


def device_findings(use: Use) -> list[Finding]:
    """Find why a container can't drive the instances' devices, or may not, whatever starts it.

    >>> blackwell = ("ml.p6-b200.48xlarge",)
    >>> old = Use(framework="pytorch", framework_version="2.1.0", instance_types=blackwell)
    >>> [found.certain for found in device_findings(old)]
    [True]
    """
    return [
        Finding(_PATHS.get(rule.subject, "strategy"), rule.message(known), rule.verdict == "no")
        for known in facts(NoStrategy(), use)
        for rule in deciding("none", known)
        if rule.strategy == "*" and rule.verdict != "yes"
    ]


def first_version(framework: str, instance_type: str) -> str | None:
    """Return the first version of a framework whose container can drive a type's GPUs.

    ``None``: the oldest container that is known can.

    >>> first_version("pytorch", "ml.p6-b200.48xlarge")
    '2.7.1'
    """
    older = False
    for version in containers.versions(framework):
        use = Use(framework=framework, framework_version=version, instance_types=(instance_type,))
        if not any(rule.verdict != "yes" for rule in _about_cuda(use)):
            return version if older else None
        older = True
    return None


def _about_cuda(use: Use) -> Iterator[Rule]:
    for known in facts(NoStrategy(), use):
        yield from (rule for rule in deciding("none", known) if rule.subject == "cuda")
