"""Everyone who acts for a pipeline, with least privilege: computed without asking AWS.

The policies come from the steps of the graph and the resources of the deployment; what makes
deployments (:mod:`orchestration.deploy.composing`) puts the very same ones on the roles it makes.
"""

from orchestration.deploy.identities.every import identities
from orchestration.deploy.identities.identity import WHO, Identity, Who

__all__ = ["WHO", "Identity", "Who", "identities"]
