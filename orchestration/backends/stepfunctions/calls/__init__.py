"""Calls as states: a request is sent, recognised if it was sent before, and followed to its end."""
