"""Tasks: their integrations and requests, and what they leave to be paid."""
