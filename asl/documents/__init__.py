"""The front door for documents, one module for each feature: `asl` loads that of a call."""
