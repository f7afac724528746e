"""S3 Batch Operations that copy the real objects of the embedded S3."""
