"""``orchestrate probe``: short jobs that measure what decides a plan, and past ones."""
