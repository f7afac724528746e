"""State machines themselves: their logging."""
