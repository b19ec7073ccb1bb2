"""Public functions that run workflows; `asl` loads each module with its first use."""
