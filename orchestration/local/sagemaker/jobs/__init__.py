"""Training and processing jobs."""
