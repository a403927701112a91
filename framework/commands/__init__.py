"""The commands of `paddock`, one module each; `framework.cli` imports only the one that is run (00 §5)."""
