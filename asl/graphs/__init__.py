"""Documents as graphs: drawn (Mermaid, DOT, SVG), compared and planned."""
