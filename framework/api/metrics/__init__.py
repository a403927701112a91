"""`GET /metrics`: everything that the manager and its engines count, as one text (13 §9)."""
