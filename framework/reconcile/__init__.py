"""Compare what is wanted with what was recorded, decide the smallest set of actions, drive them (07 §3-4)."""
