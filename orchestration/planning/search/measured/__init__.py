"""Corrections of predictions by what was measured of the same training."""
