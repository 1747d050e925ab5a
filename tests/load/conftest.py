"""How many cases the property tests try: few and always the same, or many anew (`make fuzz`)."""

from hypothesis import HealthCheck, settings

settings.register_profile("few", max_examples=8, derandomize=True, deadline=None, database=None)
settings.register_profile(
    "many", max_examples=200, deadline=10_000, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("few")
