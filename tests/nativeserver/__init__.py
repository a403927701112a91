"""The HTTP server of the native engine."""
