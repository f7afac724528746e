"""The process of one embedded AWS, and the handle with which other processes use it."""
