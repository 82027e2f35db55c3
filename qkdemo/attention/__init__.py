"""Attention itself: inputs, norms, the variants of forming logits, bounds, rotary positions, measures, pipelines."""
