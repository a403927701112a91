"""The page Try: a conversation with one model, or two side by side, over the endpoint of all clients."""
