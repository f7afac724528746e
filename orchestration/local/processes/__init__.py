"""Child processes: their environment, their time and their end."""
