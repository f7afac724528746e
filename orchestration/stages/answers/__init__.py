"""Answers of a new model, judged by a script of the user's."""
