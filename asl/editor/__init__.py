"""Layer 9: the language server for editors.

`server` has the requests of the protocol. They read an `EditedDocument` (`edited`), whose text is
parsed with tolerance (`json_syntax`, `yaml_syntax`), so that they also work while it is typed. Only
diagnostics need the real readers and checks.
"""
