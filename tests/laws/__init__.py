"""What holds for every workflow, whatever its data."""
