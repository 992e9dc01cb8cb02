"""The command line: one module per noun, imported on use. Parses, calls one function, prints."""
