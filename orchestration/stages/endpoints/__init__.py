"""Endpoints: what is made for one, how it changes over to it, and how that is verified."""
