"""The commands that write files to begin from: a folder with a pipeline, and the runtime."""
