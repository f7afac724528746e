"""People who are asked, and their answers."""
