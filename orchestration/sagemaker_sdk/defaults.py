"""Defaults of the SDK's own configuration file, which its session adds to requests.

https://sagemaker.readthedocs.io/en/v2/overview.html#configuring-and-using-defaults-with-the-sagemaker-python-sdk
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestration.sagemaker_sdk.findings import Findings


def configured_tags(estimator: Any) -> list[Mapping[str, str]]:
    """Return the tags that V2's session adds; other defaults are in the estimator's attributes."""
    present = {tag["Key"] for tag in estimator.tags or ()}
    added = _section(estimator.sagemaker_session, "TrainingJob").get("Tags") or ()
    return [tag for tag in added if tag["Key"] not in present]


def refuse_defaults(trainer: Any, findings: Findings) -> None:
    """Report the defaults that V3's trainer adds when it trains."""
    session = trainer.sagemaker_session
    sections = {
        "SageMaker.TrainingJob": _section(session, "TrainingJob"),
        "SageMaker.PythonSDK.Modules.ModelTrainer": _section(
            session, "PythonSDK", "Modules", "ModelTrainer"
        ),
    }
    for path, section in sections.items():
        for name in section:
            findings.add(
                f"sagemaker_session.sagemaker_config.{path}.{name}",
                "is added by the trainer when it trains; set it on the trainer",
            )


def _section(session: Any, *path: str) -> Mapping[str, Any]:
    section = getattr(session, "sagemaker_config", None)
    for name in ("SageMaker", *path):
        section = section.get(name) if isinstance(section, Mapping) else None
    return section if isinstance(section, Mapping) else {}
