"""The table of schedules and of the moments at which they fire."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

TABLE: Final[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "data" / "schedules.yaml").read_text()
)
FIRES: Final[list[dict[str, Any]]] = TABLE["fires"]
REFUSED: Final[list[dict[str, str]]] = TABLE["refused"]


def named(row: dict[str, Any]) -> str:
    return f"{row['cron']} {row.get('timezone', '')}: {row['about']}"


def after(row: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(row["after"])


def moments(row: dict[str, Any]) -> list[datetime]:
    """The next moments in UTC: equal local times with other offsets would pass for others."""
    return [datetime.fromisoformat(text).astimezone(UTC) for text in row["next"]]
