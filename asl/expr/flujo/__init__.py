"""What documents of the Flujo dialect compute and JSONata cannot say.

Pure functions of the data, bounded in work: conditions are evaluated in their closed grammar
(`conditions`), templates are filled in (`templates`), and the data of an execution is kept: steps
and their results (`data`), state machines (`machines`), branches and items (`forks`), rounds
(`loops`). Documents reach them as functions of JSONata (`functions`); `hops` tells a history of a
machine's transitions.
"""
