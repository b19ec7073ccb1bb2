"""Where values are kept that outlive a run."""
