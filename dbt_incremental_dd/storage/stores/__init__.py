"""What each kind of object store is called, and how its options are told to Hadoop: one file for each."""
