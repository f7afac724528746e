"""One stage's script, run alone as in its container, with data of this machine."""

from orchestration.local.scripts.checking import check
from orchestration.local.scripts.reporting import ScriptReport

__all__ = ["ScriptReport", "check"]
