"""A track that is taken away: on paper, as slides without a server, as Markdown."""
