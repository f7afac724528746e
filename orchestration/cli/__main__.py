"""``python -m orchestration.cli``."""

from orchestration.cli import main

main()
