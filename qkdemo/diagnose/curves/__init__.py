"""What the curves of a training run say: events of the loss, growth of the logits, and causes."""
