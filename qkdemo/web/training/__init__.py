"""Live training on the page."""
