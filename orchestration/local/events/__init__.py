"""EventBridge: events of S3, of the model registry and of one's own, and schedules."""
