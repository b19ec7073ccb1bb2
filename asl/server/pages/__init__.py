"""The pages, `/ui`: what people see of executions, documents and requests."""
