"""Devices and their memory, named as the engine names them (04 §2.5). Asks, decides nothing."""
