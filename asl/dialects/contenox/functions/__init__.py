"""Functions of the Contenox dialect that JSONata does not have.

They are pure functions of the data, bounded in work: `chain_data` holds the output and the
variables of a chain, `templates` and `rendering` parse and render a subset of Go's templates with
macros, `handlers` turn the answers of models and tools into results, and `texts` converts values to
text. `table` makes them available to JSONata.
"""
