"""The stages after the end of a run: on_failure, on_success and always."""
