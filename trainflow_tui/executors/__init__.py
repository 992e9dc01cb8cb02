"""How a command reaches a machine. Bytes in, bytes out; no rights, no parsing."""
