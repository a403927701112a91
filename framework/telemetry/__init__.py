"""What happened and what is measured: event log, change signal. A sink: it calls nobody."""
