"""IAM as it decides on every call: the caller, what the call needs, and what policies allow.

No library on the index does this: moto 5.2.5 looks at actions alone.
"""
