"""Layer 9: the command line. One module per command, one row in the table of `main`."""
