"""What documents of the Contenox dialect compute and JSONata cannot say.

Pure functions of the data, bounded in work: the variables of a chain and the output that moves
along (`data`), texts in the closed part of Go's template language and the macros around it
(`templates`, `rendering`), what handlers make of an answer (`answers`, `chats`), the numeric
operators (`numbers`) and compositions (`composing`). Documents reach them as functions of JSONata
(`functions`).
"""
