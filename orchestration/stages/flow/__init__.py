"""Stages that call nothing: they hold a run up, or end it."""
