"""The commands that read an account and change nothing of it."""
