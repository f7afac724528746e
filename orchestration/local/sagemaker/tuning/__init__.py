"""Tuning jobs: training jobs that really run, with values that a search chooses."""
