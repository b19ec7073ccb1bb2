"""What OpenTelemetry is told."""
