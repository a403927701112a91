"""Who listens on a loopback port, as far as this user may see it (PL-06). For sentences only."""

from __future__ import annotations

import psutil

from framework.values.plain_text import visible


def port_holder(port: int) -> str:
    """`process 123 (name)`, or nothing where that cannot be seen. Blocking."""
    try:
        listeners = [
            found.pid
            for found in psutil.net_connections(kind="tcp")
            if found.status == psutil.CONN_LISTEN and found.laddr and found.laddr.port == port
        ]
        pid = next((pid for pid in listeners if pid is not None), None)
        return f"process {pid} ({visible(psutil.Process(pid).name())})" if pid is not None else ""
    except (psutil.Error, OSError):
        return ""
