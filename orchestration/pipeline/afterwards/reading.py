"""Outputs that stages after a run's end read, which a run that failed may not have reached.

A stage of ``on_failure`` or ``always`` that needs such an output is skipped where it is absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from orchestration.expressions import All, Compare
from orchestration.pipeline.afterwards.sections import ALWAYS, ON_FAILURE, STAGES
from orchestration.pipeline.conditions.inheriting import Conditions, inherited, needed, strict
from orchestration.refs import Expression, Ref

if TYPE_CHECKING:
    from orchestration.pipeline.draft import Written

_UNSURE: Final = (ON_FAILURE, ALWAYS)
"""The fields with stages that follow a run which may not have come to others."""


def is_unsure(reader: str, of: str) -> bool:
    """Return whether a stage of one field may find that one of another has not ended well."""
    return reader in _UNSURE and of == STAGES


def conditions(stages: Iterable[Written]) -> dict[str, Conditions]:
    """Return all conditions of each stage, by its name.

    Its own, those of the stages that it needs, and that outputs are there which a failed run may
    not have.
    """
    listed = list(stages)
    sections = {written.name: written.section for written in listed}
    own: dict[str, Expression[bool] | None] = {}
    needs: dict[str, list[str]] = {}
    for written in listed:
        refs = [ref for _, ref in needed(written.references)]
        unsure = [r for r in refs if is_unsure(written.section, sections.get(r.stage, ""))]
        own[written.name] = _own(written, dict.fromkeys(unsure))
        needs[written.name] = [ref.stage for ref in refs if ref not in unsure]
    return inherited(own, needs)


def _own(written: Written, refs: Mapping[Ref[object], None]) -> Expression[bool] | None:
    when = None if written.stage is None else written.stage.when
    parts = (*(() if when is None else (strict(when),)), *(Compare("ne", r, None) for r in refs))
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else All(parts)
