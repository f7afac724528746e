"""Stands for the script of the original, which runs in the job."""
