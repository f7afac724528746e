"""Parts of a request for a plan: the model, amounts, and machines with their containers."""
