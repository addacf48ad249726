#!/bin/sh
# Prints the notices of what is compiled into twscope:   licenses.sh LICENSE [FOLDER_OF_uPlot] -- HEADER...
# twscope's own licence, uPlot's where the page is built in, and those of the Debian packages that the headers belong to.
set -eu

title() { printf '\n==== %s ====\n\n' "$*"; }

# A whole file of notices, or of a long one (Boost's has two megabytes) what holds for the package as a whole.
notices() {
    if [ "$(wc -c <"$1")" -le 32768 ]; then
        cat "$1"
    else
        awk 'BEGIN { RS = ""; ORS = "\n\n" }
             /^Files: \*\n/ { print; match($0, /\nLicense: [^\n]*/); name = substr($0, RSTART + 1, RLENGTH - 1) }
             name != "" && index($0, name "\n") == 1 { print }' "$1"
    fi
}

printf '==== twscope ====\n\n'
cat "$1"
shift
if [ "$1" != -- ]; then
    title "uPlot, in the live page"
    cat "$1/LICENSE"
    shift
fi
shift
for header in "$@"; do
    package=$(dpkg-query -S "$(realpath "$header")" 2>/dev/null | sed 's/:.*//') || true
    if [ -r "/usr/share/doc/$package/copyright" ]; then
        title "$package"
        notices "/usr/share/doc/$package/copyright"
    else
        title "$header"
        echo "Where this twscope was built, no Debian package had this header; see the library's own licence."
    fi
done
