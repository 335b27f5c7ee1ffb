//! Finds, replicates, splits and serves partitions behind one Db.
