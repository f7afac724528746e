"""The commands that read an account or a file and change nothing of it."""
