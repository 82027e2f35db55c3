"""Verified facts that the app ships, each with its source."""
