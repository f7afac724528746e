"""The two query languages: what their texts read, and where such texts stand."""
