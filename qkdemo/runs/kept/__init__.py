"""What runs leave behind and outlives the server: records, states to go on from, and runs that came with the app."""
