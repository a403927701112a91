"""The description of all routes in the form of OpenAPI 3.1, made from what the code declares (13 §8)."""
