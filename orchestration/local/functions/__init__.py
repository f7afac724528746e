"""Lambda: moto keeps the functions, and they run here, without Docker."""
