"""Helpers of the tests: waiting, running the product as a process, small model files."""
