"""A lab's page: its dials, its exhibit and what a visitor takes away."""
