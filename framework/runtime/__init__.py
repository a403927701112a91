"""One object per process: start, health, drain, stop, respawn, slots, logs (06, 07)."""
