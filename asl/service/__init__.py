"""Step Functions as a service on a store: operations, and the endpoint of AWS's protocol."""
