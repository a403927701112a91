"""Page values: frozen, complete, made by pure functions from the values of the running system."""
