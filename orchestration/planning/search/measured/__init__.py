"""Corrections by what was measured: of the same training, and of past jobs on spot capacity."""
