"""Functions of the Flujo dialect that JSONata does not have.

They are pure functions of the data, bounded in work: `conditions` evaluates conditions, `templates`
renders templates, and the data of an execution is changed by steps (`pipeline_data`), branches and
loops (`control_flow`) and state machines (`state_machines`, with their history events). `table`
makes them available to JSONata.
"""
