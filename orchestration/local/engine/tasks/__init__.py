"""The requests of tasks: their integrations, and the JSON that states see."""
