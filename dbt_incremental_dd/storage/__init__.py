"""Files on local disks and in object storage, and their durability."""
