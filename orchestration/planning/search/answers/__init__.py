"""The answers of a search: plans and their alternatives, rejections, and what is missing."""
