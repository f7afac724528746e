"""FSx for Lustre, simulated: a file system is a directory, its S3 associations are copied files."""
