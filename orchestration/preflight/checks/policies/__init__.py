"""The policies of buckets and keys, which allow and deny beside those of roles."""

from orchestration.preflight.checks.policies.buckets import bucket_policies
from orchestration.preflight.checks.policies.keys import key_policies

__all__ = ["bucket_policies", "key_policies"]
