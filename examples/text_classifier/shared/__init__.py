"""Code that training, evaluation and endpoint have in common."""
