#!/bin/sh
# sh cmake/test_report.sh REPORTS JUNIT: says which tests of a run were skipped and why, and counts all of them.
# REPORTS holds what GoogleTest's programs wrote (a file for each test of ctest that is such a program), JUNIT what ctest
# did. Prints a line for each reason, and a last one: "7181 passed, 0 failed, 567 skipped".
set -eu
reports=$1
junit=$2
cat /dev/null "$reports"/*.xml 2>/dev/null | awk -v junit="$junit" -v reports="$reports" '
  function attribute(line, key) {
    if (!match(line, " " key "=\"[^\"]*\"")) return ""
    return substr(line, RSTART + length(key) + 3, RLENGTH - length(key) - 4)
  }
  # A few names stand for all of those that a setting rules out; tests without their data are all named.
  function skip(name, why) {
    if (!(why in count)) reasons[++kinds] = why
    if (++count[why] <= 4 || why ~ /data/) names[why] = names[why] " " name
    skipped++
  }
  /^ *<testcase / {
    tests++
    within = attribute($0, "classname") "." attribute($0, "name")
    if (attribute($0, "status") == "notrun") skip(within, "disabled")
  }
  /^ *<skipped / {
    why = attribute($0, "message")
    sub(/^.*&#x0A;/, "", why)
    gsub(/&apos;/, "\047", why); gsub(/&quot;/, "\"", why); gsub(/&lt;/, "<", why); gsub(/&gt;/, ">", why)
    gsub(/&amp;/, "\\&", why)
    skip(within, why == "" ? "no reason given" : why)
  }
  /^ *<failure / { if (!(within in failures)) { failures[within] = 1; failed++ } }
  END {
    while ((getline line < junit) > 0) {
      if (line !~ /<testcase /) continue
      name = attribute(line, "name")
      status = attribute(line, "status")
      file = reports "/" name ".xml"
      has = (getline ignored < file) > 0
      close(file)
      if (has) continue
      # No program of GoogleTest, or one that ended before it could report.
      tests++
      if (status == "fail") failed++
      else if (status != "run") skip(name, "see its output")
    }
    for (i = 1; i <= kinds; i++) {
      why = reasons[i]
      more = count[why] - split(names[why], unused, " ")
      printf "skipped, %s:%s%s\n", why, names[why], (more > 0) ? " and " more " more" : ""
    }
    printf "%d passed, %d failed, %d skipped\n", tests - failed - skipped, failed, skipped
  }'
