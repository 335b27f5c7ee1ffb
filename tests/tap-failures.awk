# One line for each test that failed in a TAP report of Node: its name, its place and why. Suites are left out that
# failed only because a test in them did.

/^ *not ok / {
    name = $0
    sub(/^ *not ok [0-9]+ - /, "", name)
    place = ""
    suite = 0
}

/^ *location: / && name != "" {
    place = $0
    sub(/^.*\//, "", place)
    sub(/'.*$/, "", place)
}

/^ *failureType: 'subtestsFailed'/ { suite = 1 }

# A file that does not load fails as a whole, and says why before.
/^# [A-Za-z]*Error/ { crash = substr($0, 3) }

# A reason of several lines ends where the next property begins, which is where `error` itself began.
reading {
    match($0, /^ */)
    if (NF == 0 || RLENGTH > margin) {
        line = substr($0, RLENGTH + 1)
        if (line != "") why = why (why == "" ? "" : " ") line
        next
    }
    reading = 0
    tell()
}

/^ *error: / && name != "" {
    match($0, /^ */)
    margin = RLENGTH
    why = $0
    sub(/^ *error: /, "", why)
    if (why ~ /^[|>]/) {
        why = ""
        reading = 1
    } else {
        gsub(/^'|'$/, "", why)
        tell()
    }
}

END { if (reading) tell() }

function tell() {
    if (why == "test failed" && crash != "") why = crash
    gsub(/\033\[[0-9;]*m/, "", why)
    if (!suite) print substr(name (place == "" ? "" : " (" place ")") ": " why, 1, 300)
    name = ""
}
