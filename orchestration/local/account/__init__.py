"""An embedded AWS account: what all its services share."""
