"""Trouble for a whole `paddock up` under load, and what clients see of it: tests/chaos and bench.chaos."""
