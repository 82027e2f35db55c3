"""The process that answers: what it needs from the system, whom it answers, and how it ends."""
