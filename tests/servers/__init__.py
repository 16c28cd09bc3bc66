"""Real servers that tests start: from packages of registries, on this machine only, ended with the test."""
