"""Ways to host a model: without instances, behind a queue, with instances that follow the load."""
