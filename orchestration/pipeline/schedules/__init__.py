"""Schedules: cron that means the same to both backends, and the moments at which it fires."""
