"""Trouble of every kind under load, in a form short enough for each run; `bench/chaos.py` is the long one."""
