"""What was learnt. The content lives in the top-level folder of the same name."""
