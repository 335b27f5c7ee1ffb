//! The NoSQL REST protocol: parse, authenticate, call Db, map the error, answer.
