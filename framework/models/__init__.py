"""Model files: what a GGUF header says, which files make up a model, how far a load has come (02)."""
