"""From captions as written to what an attacker reads, and on which images; pure and seeded."""
