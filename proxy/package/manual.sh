#!/usr/bin/env bash
# Makes the manual of what --help says: twscope.1, and twscope-COMMAND.1 for each command.
#   manual.sh TWSCOPE FOLDER
# With SOURCE_DATE_EPOCH the pages bear that date, without it none: the same program has the same manual.
set -euo pipefail

readonly TWSCOPE=$1 FOLDER=$2
readonly NAME='proxy that shows what a Teeworlds or DDNet server really sends'
VERSION=$("$TWSCOPE" --version)
readonly VERSION
export COLUMNS=10000 # help2man takes a wrapped line for two

# "COMMAND DESCRIPTION" of each command, and of the one that --help does not list.
commands() {
    "$TWSCOPE" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]\+\) \+/\1 /p'
    "$TWSCOPE" extcap --help | sed -n '1s/^/extcap /p'
}

# page NAME DESCRIPTION [COMMAND]
page() {
    local others=() command
    for command in '' "${COMMANDS[@]}"; do
        command=twscope${command:+-$command}
        [[ $command == "$1" ]] || others+=("\\fB$command\\fR(1)")
    done
    {
        printf '[NAME]\n%s \\- %s\n\n[SEE ALSO]\n' "$1" "$2"
        printf '%s\n' "${others[@]/%/,}" | sed '$s/,$//'
    } >"$FOLDER/include"
    # Without a date there must be none of today, either.
    SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-0} help2man --no-info --version-string="${VERSION#* }" --source="$VERSION" \
        --include="$FOLDER/include" "$TWSCOPE${3:+ $3}" |
        if [[ -n ${SOURCE_DATE_EPOCH:-} ]]; then cat; else sed '/^\.TH /s/"January 1970"/""/'; fi >"$FOLDER/$1.1"
    gzip -9nc "$FOLDER/$1.1" >"$FOLDER/$1.1.gz"
}

rm -rf "$FOLDER"
mkdir -p "$FOLDER"
mapfile -t COMMANDS < <(commands | cut -d ' ' -f 1)
((${#COMMANDS[@]})) || { echo "manual.sh: $TWSCOPE --help names no commands" >&2; exit 1; }
while read -r command description; do
    page "twscope-$command" "${description,}" "$command"
done < <(commands)
page twscope "$NAME"
rm "$FOLDER/include"
