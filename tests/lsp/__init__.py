"""The real server process, spoken to over its standard input and output; the model alone is a stub."""
