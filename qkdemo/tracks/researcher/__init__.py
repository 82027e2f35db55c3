"""The researcher's track."""
