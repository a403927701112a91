"""Changing the manifest: checked first, written in one step, kept for going back (01 §2.7).

The watcher of reconcile sees the written file as it sees any other, so that each apply is one reload.
"""
