"""Documents as graphs: drawings (Mermaid, DOT, SVG), comparisons and plans."""
