"""`dbt-dd watch`: keeps models up to date with a warm session and manifest, and runs them whenever a source has
something new."""
