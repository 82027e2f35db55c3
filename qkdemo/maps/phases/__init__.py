"""The phase diagram of training: what it consists of, its cells as they are trained, its picture."""
