"""Charts: scales, lines, bins and spans, for whatever values come."""
