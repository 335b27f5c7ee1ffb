# Holds what the .NET client said against the list of scenarios that are known to fail. Reads the list, then the output.
# A failure that is not listed, and a listed scenario that passes or is not there, make the verdict bad. `families` names
# those that were run, when not all of them were.

function names(line) {
    sub(/^(not )?ok /, "", line)
    sub(/[: ].*$/, "", line)
    return line
}

FNR == NR {
    family = $1
    sub(/\..*$/, "", family)
    is_run = families == "" || index(" " families " ", " " family " ")
    if ($0 !~ /^ *(#|$)/ && is_run) expected[$1] = 1
    next
}

/^ok / {
    passed++
    name = names($0)
    seen[name] = 1
    if (name in expected) bad("passes " name " " over ": it must leave tests/sdk/dotnet/expected.txt")
}

/^not ok / {
    name = names($0)
    seen[name] = 1
    if (name in expected) known++
    else bad("failed " name " " over " " substr($0, length("not ok " name) + 1, 240))
}

/^[0-9]+ passed, [0-9]+ failed/ { ended = 1 }
/^[1-9][0-9]* splits meanwhile/ { was_split = 1 }

END {
    if (!ended) bad("missing: the client did not come to its end " over)
    if (over ~ /splits/ && !was_split) bad("missing: no partition was split")
    for (name in expected) if (!(name in seen)) bad("missing " name " " over)
    printf "dotnet: %d passed, %d expected failures, %d findings %s\n", passed, known, findings, over
    exit findings > 0
}

function bad(what) {
    findings++
    print "dotnet: " what
}
