"""Tests of the JSON API: its shapes, its routes, who may call them."""
