"""The coverage ledger: what was asked for, what was answered, and what was lost."""
