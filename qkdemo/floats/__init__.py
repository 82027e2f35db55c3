"""Number formats: what they hold, how a value is rounded into them, and where they can be computed."""
