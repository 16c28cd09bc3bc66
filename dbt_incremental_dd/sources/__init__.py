"""Sources: relations and files whose records are read as changes. One file for each envelope and connector."""
