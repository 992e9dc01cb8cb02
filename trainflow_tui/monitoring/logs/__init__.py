"""Training logs: bytes to lines, lines to records and events, records to one series over all attempts of a run."""
