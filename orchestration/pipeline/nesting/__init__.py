"""Pipelines in pipelines: the stages of another file in the place of the stage that names it."""
