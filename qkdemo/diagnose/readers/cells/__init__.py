"""Cells of a log's table without a value: which NaN stands for none, and where one is missing."""
