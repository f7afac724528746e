"""Inference components: models on the instances of endpoints that they share."""
