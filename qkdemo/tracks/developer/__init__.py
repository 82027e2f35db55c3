"""The developer's track."""
