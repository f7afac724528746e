"""The hosts of a job: processes on this machine, or namespaces of their own."""
