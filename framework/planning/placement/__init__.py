"""Where a launch goes and how much of each device it takes (04 §8-§14). Pure: no files, no clock."""
