"""Models and endpoints."""
