"""Stages that may be skipped: their conditions, checks of these, and what others read of them."""
