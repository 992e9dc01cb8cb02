#!/bin/sh
# One step of an agent that works on a task. Usage: agent.sh TASK. Needs trainflow and a workspace in the current directory.
set -eu
task=$1
export TRAINFLOW_AGENT="${TRAINFLOW_AGENT:-example-agent}"

# Guidance comes first: say of each new item that it was seen, in the version that was read.
trainflow guidance list "$task" --json | python3 -c '
import json, sys
for item in json.load(sys.stdin)["items"]:
    if item["state"] == "collected" and not item["removed_at"]:
        print(item["id"], item["version"])
' | while read -r item version; do
  trainflow receipt add "$task" "$item" seen --version "$version" --no-json
done

# Ask for what only a person may decide. Exit 11 means that it waits.
here=$(dirname "$0")
request=$(trainflow approval request "$task" --title "Start the baseline" --payload "$here/approval.json" \
  --why "The environment is checked" --effect "16 cards for a day" --reversible yes --json) || test $? -eq 11
id=$(printf '%s' "$request" | python3 -c 'import json, sys; print(json.load(sys.stdin)["approval"]["id"])')
echo "Waiting for a decision on $id"

# Silence is never consent: look, do not assume.
while :; do
  state=$(trainflow approval show "$id" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["approval"]["state"])')
  case "$state" in
    pending) sleep 5 ;;
    approved)
      # Used once, for exactly this command; the token is what an executor starts with.
      trainflow approval consume "$id" --payload "$here/approval.json" --no-json
      exit 0 ;;
    *) echo "$id is $state"; exit 1 ;;
  esac
done
