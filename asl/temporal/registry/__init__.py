"""What the servers of a queue share: registered resources and the audit log."""
