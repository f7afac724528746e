"""Files that ``orchestrate init`` puts around a template, with ``@NAME@`` for what differs."""
