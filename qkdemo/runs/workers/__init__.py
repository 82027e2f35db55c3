"""Runs that go on: who waits for a worker, the processes that train, and what visitors may ask of them."""
