"""Plans as text for people: `summary` for the command line, `report` for a page with charts."""
