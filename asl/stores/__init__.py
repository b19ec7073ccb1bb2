"""Layer 6: where executions are kept so that they survive the process that runs them.

`tables` and `statements` say what is kept and asked, `backend` what keeps it: `sqlite` or `memory`.
`session` gathers what a thread writes. All others speak of executions, logs, requests and claims,
in terms of these.
"""
