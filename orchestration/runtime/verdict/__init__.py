"""The job that decides: it reads what every evaluation has written, and writes a verdict.

It runs in a container, as `python3 <this folder>`: standard library only, Python 3.8 and later. So
the decision is the same on every backend, and lists of any length stay in S3.
"""
