"""Task chains of Contenox: how they are read, written and restored."""
