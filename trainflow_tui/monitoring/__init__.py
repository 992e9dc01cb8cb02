"""What happens: logs become samples, nodes become signals."""
