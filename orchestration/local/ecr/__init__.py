"""Layers of container images that can be downloaded again; moto answers every other call to ECR."""
