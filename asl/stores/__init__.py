"""Layer 7: storage of executions, which survives the process that runs them.

`tables` and `statements` describe rows and queries as data; `backend` is the protocol of their
storage, implemented by `sqlite` and `memory`, and `registry` finds a backend by name. `session`
gathers the writes of a thread. The other modules store executions, logs, requests and claims.
"""
