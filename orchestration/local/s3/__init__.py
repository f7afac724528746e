"""S3, which moto simulates, with the rules that moto leaves out."""
