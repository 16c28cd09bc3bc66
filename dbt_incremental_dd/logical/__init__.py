"""Relational algebra over collections: immutable nodes, analyses, and rewrites from plan to plan.

Knows no Spark and no storage. Scalar expressions stay Spark SQL and are only ever evaluated by Spark.
"""
