"""Problems of a strategy, known or possible, found before anything is paid for."""

from __future__ import annotations

from collections.abc import Iterator

from orchestration.strategies.facts import facts, key
from orchestration.strategies.groups import group_findings
from orchestration.strategies.mpi_options import mpi_findings
from orchestration.strategies.processes import process_findings
from orchestration.strategies.smp_rules import own_rules
from orchestration.strategies.strategy import Strategy
from orchestration.strategies.support import deciding
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
