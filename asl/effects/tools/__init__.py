"""The calls of tools that agents make: what they may use, and what that may reach."""
