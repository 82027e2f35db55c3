"""What single labs have on their pages beside dials and exhibit."""
