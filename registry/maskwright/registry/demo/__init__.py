"""`python -m maskwright.registry.demo`: the whole path on one machine, with no network beyond loopback."""
