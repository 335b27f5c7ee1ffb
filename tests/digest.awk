# The failed tests of a TAP report in at most 15 lines: each with where it is and the first two lines of its error.
# CI shows the end of an output only, so scripts print this last. Usage: awk -f tests/digest.awk LOG

function add(line) {
    text[failed] = text[failed] substr(line, 1, 300) "\n"
    lines[failed] += 1
}

function trimmed(line) {
    gsub(/\033\[[0-9;]*m/, "", line)
    sub(/^ +/, "", line)
    return line
}

/^ *not ok / {
    failed += 1
    errors = 0
    inError = 0
    inFailure = 1
    add(trimmed($0))
    next
}

# The details of a test stand between these two lines.
/^ *\.\.\.$/ { inFailure = 0 }
!inFailure { next }

/^ *location: / { add("  " trimmed($0)) }

# An error is one quoted line, or an indented block below its name.
/^ *error: / {
    depth = match($0, /[^ ]/)
    inError = $0 ~ /: [|>]-?$/
    if (!inError) add("  " trimmed($0))
    next
}

inError && match($0, /[^ ]/) && RSTART <= depth { inError = 0 }
# A heading of Playwright's; what it waited for stands below.
inError && /^ *Call log:$/ { next }
inError && /[^ ]/ && errors < 2 {
    errors += 1
    add("  error: " trimmed($0))
}

END {
    left = 14
    for (one = 1; one <= failed && lines[one] <= left; one += 1) {
        printf "%s", text[one]
        left -= lines[one]
    }
    if (one <= failed) printf "and %d more\n", failed - one + 1
}
