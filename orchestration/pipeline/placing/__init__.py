"""The place of each stage in one graph: behind gates and conditions, and inside guards."""
