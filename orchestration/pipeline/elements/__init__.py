"""The elements of ``for_each`` that are objects, with fields of their own."""
