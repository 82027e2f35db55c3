"""Training that goes on, is kept and is shared: plans, records, their store, and the processes that train."""
