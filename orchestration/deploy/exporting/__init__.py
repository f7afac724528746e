"""The resources of a deployment as a CloudFormation template or a Terraform configuration.

Both render the very values that :func:`orchestration.deploy.apply` sends, so that whoever creates
the resources, they are the same. What only the target account knows is a placeholder.
"""

from orchestration.deploy.exporting.contents import Export, export
from orchestration.deploy.exporting.placeholders import Placeholders

__all__ = ["Export", "Placeholders", "export"]
