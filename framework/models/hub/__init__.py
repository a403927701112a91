"""Models of a Hugging Face hub: found in its cache, listed, fetched and, before that, measured (02 §7-12)."""
