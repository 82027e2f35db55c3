"""The page of maps: a lab over two of its dials at once."""
