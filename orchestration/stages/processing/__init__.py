"""Processing jobs: scripts and containers over data in S3."""
