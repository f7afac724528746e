"""The process of an embedded AWS, and the object with which another process uses it."""
