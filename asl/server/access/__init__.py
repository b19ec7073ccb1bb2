"""Who sends a request, and what that person may do."""
