"""The words of the field as values: times, frontiers, updates, batches, schemas, errors. Standard library only."""
