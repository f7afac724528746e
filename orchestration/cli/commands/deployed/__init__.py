"""The commands for what is deployed: its runs, and its end."""
