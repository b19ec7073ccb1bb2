"""Functions of the CodeMie dialect that JSONata does not have.

They are pure functions of the data, bounded in work: `outputs` parses outputs as that platform
does, `placeholders` resolves placeholders in texts, `conditions` evaluates conditions, `transforms`
runs transform nodes, and `context_store` holds the context, the message history and the writes of
branches. `table` makes them available to JSONata.
"""
