"""Speed, as ratios to the plainest fast Python for the same data work, within one process."""
