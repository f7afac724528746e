"""Commands whose work runs on this machine, in an embedded AWS of their own."""
