"""What documents of the CodeMie dialect compute and JSONata cannot say.

Pure functions of the data, bounded in work: outputs are parsed as that platform parses them
(`outputs`), placeholders in texts are resolved (`placeholders`), conditions are evaluated in their
closed grammar (`conditions`), and the context, the message history and the writes of branches are
kept (`store`, `forks`). Documents reach them as functions of JSONata (`functions`).
"""
