"""State machines themselves: their logging, their versions and aliases."""
