"""A run on the embedded AWS as one page of HTML that loads nothing."""

from orchestration.local.pages.page import page

__all__ = ["page"]
