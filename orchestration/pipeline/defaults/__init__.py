"""Fields that several stages of a file share, said once: ``defaults``."""
