//! Turns SQL into a plan, runs it over a source of items, and merges pages.
