"""The guided tracks: what to ask at which state of which lab, and what its numbers answer."""
