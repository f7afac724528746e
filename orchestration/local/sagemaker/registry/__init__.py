"""The model registry: groups, and the model packages in them."""
