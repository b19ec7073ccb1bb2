"""The REST interface, `/api/v1`."""
