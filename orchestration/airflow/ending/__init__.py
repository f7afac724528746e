"""The end of a DAG's run: how it ended, for what is done after it."""
