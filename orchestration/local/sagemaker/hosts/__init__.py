"""The hosts of jobs: processes on this machine, some in namespaces of their own."""
