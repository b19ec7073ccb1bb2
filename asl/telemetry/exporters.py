"""Exporters of traces and metrics for the command line: standard error, or a collector."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Thread
from time import monotonic
from typing import Any

from asl.core.environment import require_extra
from asl.telemetry import Telemetry

__all__ = ["EXPORTERS", "export_telemetry"]


def _console() -> tuple[Any, Any]:
    from opentelemetry.sdk.metrics.export import ConsoleMetricExporter
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter

    return ConsoleSpanExporter(out=sys.stderr), ConsoleMetricExporter(out=sys.stderr)


def _collector() -> tuple[Any, Any]:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(), OTLPMetricExporter()


PATIENCE = 5.0
"""Real seconds in which the exporters have to send the rest."""
EXPORTERS: Mapping[str, Callable[[], tuple[Any, Any]]] = {"console": _console, "otlp": _collector}
"""Functions that create an exporter of spans and one of metrics, by name."""


@contextmanager
def export_telemetry(name: str) -> Iterator[Telemetry]:
    """Yield a listener that reports executions to OpenTelemetry; the rest is sent when the block
    ends, within `PATIENCE`.

    OpenTelemetry's variables define the collector (`OTEL_EXPORTER_OTLP_ENDPOINT`).

    Args:
        name: A key of `EXPORTERS`.

    Raises:
        AslError: The extra `telemetry` is not installed.
    """
    require_extra("opentelemetry", "telemetry", "telemetry")
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", "asl")})
    spans, metrics = EXPORTERS[name]()
    # What still hangs after the patience must not delay the end of the process either.
    tracer_provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    tracer_provider.add_span_processor(BatchSpanProcessor(spans))
    meter_provider = MeterProvider(
        [PeriodicExportingMetricReader(metrics)], resource, shutdown_on_exit=False
    )
    telemetry = Telemetry(tracer_provider=tracer_provider, meter_provider=meter_provider)
    try:
        yield telemetry
    finally:
        shutdowns = (tracer_provider.shutdown, meter_provider.shutdown)
        threads = [Thread(target=each, name="asl-telemetry", daemon=True) for each in shutdowns]
        for thread in threads:
            thread.start()
        deadline = monotonic() + PATIENCE
        for thread in threads:
            thread.join(max(0.0, deadline - monotonic()))
        if any(thread.is_alive() for thread in threads):
            telemetry.report(f"not everything was sent within {PATIENCE:g} s")
