"""SNS: the checks of requests that moto leaves out."""
