"""Attention as the field writes it: variants, norms, bounds, rotary positions, measures, inputs, pipelines."""
