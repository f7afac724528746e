"""Defaults of the SDK's own configuration file, which its session adds to what it sends.

https://sagemaker.readthedocs.io/en/v2/overview.html#configuring-and-using-defaults-with-the-sagemaker-python-sdk
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestration.sagemaker_sdk.findings import Findings


def configured_tags(estimator: Any) -> list[Mapping[str, str]]:
    """Tags that V2's session adds to an estimator's; other defaults are in its attributes."""
    given = {tag["Key"] for tag in estimator.tags or ()}
    added = _section(estimator.sagemaker_session, "TrainingJob").get("Tags") or ()
    return [tag for tag in added if tag["Key"] not in given]


def refuse_defaults(trainer: Any, findings: Findings) -> None:
    """Finds the defaults that V3's trainer takes up when it trains."""
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
                "is taken up by the trainer when it trains; give it to the trainer",
            )


def _section(session: Any, *path: str) -> Mapping[str, Any]:
    found = getattr(session, "sagemaker_config", None)
    for name in ("SageMaker", *path):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}
