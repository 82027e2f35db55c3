"""qkdemo: see and try query-key normalisation in transformer attention."""
