"""The small transformers: where their weights stand, the forward pass of many at once, and its derivatives."""
