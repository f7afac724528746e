"""DataSync that copies real objects between the buckets of the embedded S3."""
