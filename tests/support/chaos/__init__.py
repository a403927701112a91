"""Trouble for a whole `paddock up` under load, and a count of what clients saw. For tests/chaos and bench.chaos."""
