"""Which of two small transformers collapses while it trains, and is there a way back?"""
