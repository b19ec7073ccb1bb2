"""Layer 8: Tasks that call services of AWS, for resources without a binding (extra `aws`).

    import asl.aws

    asl.run(document, aws=asl.aws.integrations(endpoint_url="http://127.0.0.1:5000"))

No call is made unless a run has the binding `aws`.
"""

from asl.aws.integrations import Integrations, integrations

__all__ = ["Integrations", "integrations"]
