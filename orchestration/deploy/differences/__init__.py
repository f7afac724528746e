"""Changes as people read them: definitions by state, policies by statement, the rest by field."""

from orchestration.deploy.differences.readable import readable

__all__ = ["readable"]
