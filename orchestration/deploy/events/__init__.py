"""Rules of EventBridge: those that start a pipeline, and those that tell how its runs end."""
