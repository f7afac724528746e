"""The Parameter Store of Systems Manager: the checks of requests that moto leaves out."""
