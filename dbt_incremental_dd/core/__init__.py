"""The field's concepts as values: times, frontiers, types, schemas, data files, errors. Standard library only."""
