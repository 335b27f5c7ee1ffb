# One line for each Rust test that failed in the output of `cargo test`: its name, where it panicked and what it said.
# What did not compile, and a process that a signal ended, is named as well.

/^---- .* stdout ----$/ {
    tell()
    name = $0
    sub(/^---- /, "", name)
    sub(/ stdout ----$/, "", name)
    next
}

# What failed tests said ends where their names are listed.
/^failures:$/ || /^test result: / { tell() }

# Cargo speaks, and not a test. What it sums up is told one by one.
name == "" && /^error(\[E[0-9]+\])?: / {
    tell()
    if ($0 !~ /^error: (test failed|doctest failed|could not compile|aborting due|[0-9]+ targets? failed)/) why = $0
    next
}
name == "" && why != "" && /^ *--> / {
    why = why " at " $2
    tell()
}
name == "" && /process didn't exit successfully: .*signal: / { why = $0 }

# Only the first panic of a test is told: others follow from it.
name != "" && /^thread '.*panicked at / && !panicked {
    why = $0
    sub(/^.*panicked at /, "panicked at ", why)
    panicked = 1
    next
}
name != "" && /^Error: / && !panicked { why = "" }
name != "" && /^(note: |stack backtrace:|thread ')/ && panicked { ended = 1 }
name != "" && !ended && NF > 0 {
    line = $0
    sub(/^ +/, "", line)
    why = why (why == "" ? "" : " ") line
}

END { tell() }

function tell() {
    if (name != "") why = name ": " why
    sub(/^ +/, "", why)
    if (why != "") print substr(why, 1, 300)
    name = why = ""
    panicked = ended = 0
}
