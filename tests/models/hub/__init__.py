"""Tests of models from a hub, with the real client against a stand-in on the loopback."""
