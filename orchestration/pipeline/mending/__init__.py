"""Readable data out of data with mistakes, so that one does not hide the others."""
