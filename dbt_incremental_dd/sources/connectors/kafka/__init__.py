"""Kafka topics as sources."""
