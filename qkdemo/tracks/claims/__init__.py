"""Claims about QK norm, each with its experiment."""
