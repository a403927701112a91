"""From request and facts to a launch plan, all pure: no files, no processes, no clock (00 §2)."""
