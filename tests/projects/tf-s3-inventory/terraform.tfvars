project = "acme"
