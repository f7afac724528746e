"""One embedded AWS account, and what its services share."""
