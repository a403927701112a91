"""Tests of framework/editing."""
