"""The full-screen application: one module per mode, widgets that take snapshots and say messages."""
