"""Attention stage by stage: what the stages are, as each number format holds them, and what is lost in each."""
