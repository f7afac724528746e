"""Registry paths of AWS's framework containers, from a dated table in this package.

The table (``table.json``) holds what the SageMaker Python SDKs named in it answer, without the SDK.
AWS publishes images that it does not have yet; give their registry path itself then.
https://docs.aws.amazon.com/sagemaker/latest/dg-ecr-paths/sagemaker-algo-docker-registry-paths.html
"""

from orchestration.strategies.images.table import (
    Image,
    Source,
    frameworks,
    images,
    source,
    versions,
)
from orchestration.strategies.images.uris import Distribution, uri

__all__ = [
    "Distribution",
    "Image",
    "Source",
    "frameworks",
    "images",
    "source",
    "uri",
    "versions",
]
