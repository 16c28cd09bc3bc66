"""Files wherever they are: local disks and object storage, made durable."""
