"""HTTP server of the native engine: llama-server's interface over our own core (12)."""
