"""What the numbers mean. Pure; readers take a binary stream."""
