"""Probes: short jobs of a stage's training under a candidate's plan, and what they measured."""
