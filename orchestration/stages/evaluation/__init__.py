"""Evaluation: of every checkpoint, of a final model, or of what a training job has measured."""
