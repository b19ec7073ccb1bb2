"""Other interpreters of Amazon States Language run the cases of this suite."""
