"""Places: layouts on one cluster, the memory that they need, and bounds on their time."""
