"""A track beside the pages."""
