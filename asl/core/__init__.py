"""Layer 0: JSON values, source places, documents, diagnostics, codes and errors."""
