"""The beginner's track."""
