"""Policies, by which IAM and buckets decide: what applies to a call, and what follows from it."""
