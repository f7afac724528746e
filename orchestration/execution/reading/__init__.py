"""Results of jobs to read: the reports that they write, and their logs."""
