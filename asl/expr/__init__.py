"""Layer 1: paths, templates, intrinsic functions, choice rules and times, compiled to closures."""
