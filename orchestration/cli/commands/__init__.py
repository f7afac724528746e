"""The code behind each command of ``orchestrate``, loaded when the command runs."""
