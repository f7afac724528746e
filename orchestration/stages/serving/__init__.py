"""Models that answer: the model itself, and transforms of data by one."""
