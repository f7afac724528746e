"""Code that training and evaluation have in common."""
