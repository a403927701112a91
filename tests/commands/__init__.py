"""Tests of the commands: what they print, where, and how they end."""
