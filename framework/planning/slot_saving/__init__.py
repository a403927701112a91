"""When the prompt caches of slots may be saved and given back, and why not (07 §11). Pure."""
