"""A simulated FSx for Lustre: file systems are directories, associated S3 prefixes are copied."""
