"""The rules of a well-formed graph, one function each, and the shapes of AWS requests."""
