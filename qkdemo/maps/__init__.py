"""A lab over two of its dials at once: maps, surfaces, and the phase diagram of training."""
