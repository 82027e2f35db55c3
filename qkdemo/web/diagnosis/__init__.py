"""The page on which somebody examines a file of their own."""
