"""Layer 6: agents are reached through adapters: functions, processes, scripts."""
