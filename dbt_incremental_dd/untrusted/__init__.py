"""SQL that others have written: what of it is computed, and how much it may take."""
