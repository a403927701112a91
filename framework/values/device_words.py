"""What may stand in `devices` of a pool or a pick besides names of devices (01 §1.1)."""

from __future__ import annotations

AUTO = "auto"
"""Every local GPU or, where there is none, host memory."""
CPU = "cpu"
"""Host memory."""
REMOTE = "rpc://"
"""Before `host:port` of a server of llama.cpp's RPC backend."""
UUIDS = ("GPU-", "MIG-")
"""How the UUIDs of NVIDIA's GPUs and of their slices begin."""
