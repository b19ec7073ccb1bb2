"""The front door for runs, one module for each feature: `asl` loads that of a call."""
