"""Parts of a call of any operation: requests that follow it, and lists in its response."""
