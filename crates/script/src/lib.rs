//! Runs stored procedures, triggers and user-defined functions against a host it is given.
