"""The labs from a shell."""
