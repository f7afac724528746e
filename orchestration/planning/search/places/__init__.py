"""Places: one layout on one cluster, the memory that it needs, and bounds on its time."""
