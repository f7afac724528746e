"""Registry paths of AWS's framework containers, from a dated table in this package.

The table (``table.json``) holds the answers of the SageMaker Python SDKs that it names, so the SDK
is not needed. For images that AWS published since, give the registry path itself.
https://docs.aws.amazon.com/sagemaker/latest/dg-ecr-paths/sagemaker-algo-docker-registry-paths.html
"""

from orchestration.strategies.images.table import (
    Image,
    Source,
    built_on,
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
    "built_on",
    "frameworks",
    "images",
    "source",
    "uri",
    "versions",
]
