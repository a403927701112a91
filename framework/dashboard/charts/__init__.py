"""Charts as values: scales, lines, bars and spans in places of an SVG. Pure; templates only print them."""
