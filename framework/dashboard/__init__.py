"""The pages for people: what runs, what was asked and granted, what happened, and the buttons (01 §3).

A page is made in three steps: `pages/` turns values into a frozen page value (pure), `templates/` print it
and compute nothing, `live` sends the parts of it that have changed. No state beyond caches.
"""
