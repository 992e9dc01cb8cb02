"""A simulated job and agent. Both use the doors that real ones use; everything they write says that it is simulated."""
