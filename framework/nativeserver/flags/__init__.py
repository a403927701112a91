"""Every flag of the command line, one table for each group; table joins them."""
