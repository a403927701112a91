"""Who gets the memory of a pool, who makes room, who waits, and whose turn it is (04 §16, 08 §2.10). Pure."""
