"""A pipeline as people see it: its stages as a picture, and what runs are given."""
