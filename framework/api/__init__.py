"""The JSON API under `/api/v1`, its shapes, and who may call it (13). Used by app, dashboard and commands."""
