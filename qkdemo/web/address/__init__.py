"""What an address holds: page, dials, language, and what of it is this session's own."""
