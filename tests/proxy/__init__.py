"""Tests of `framework/proxy`: pure parts alone, the endpoint against a scripted engine, and a real one."""
