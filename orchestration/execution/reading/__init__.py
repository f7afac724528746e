"""What jobs leave to be read: the reports that they write, and their logs."""
