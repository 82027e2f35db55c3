"""Readers of what somebody brings: nothing is run, limits come before memory, and every fault has its sentence."""
