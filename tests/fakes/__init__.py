"""Tests of the fake engine itself, without a manager."""
