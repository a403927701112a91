"""Chat in text: templates, grammars of schemas and tools, and what a reply says (08, 12 §8)."""
