"""Plans pinned beside the Python file that builds a pipeline."""
