"""Child processes: their environment, their end."""
