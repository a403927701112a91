"""What happened and is measured: event log, request log, their store, change signal. A sink: calls nobody."""
