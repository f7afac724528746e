"""Checks of requests beyond their shapes: the rules of SageMaker, and what is not simulated."""
