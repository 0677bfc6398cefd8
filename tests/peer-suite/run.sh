#!/usr/bin/env bash
# Plays the Tcl tests of Redis 7.0.15 against Sirocco, one unit at a time with a fresh server each, and compares
# with the lists beside this file:
#
#   passing.txt           unit TAB test: must pass; one that fails fails the run, one that passes unlisted is named
#   passing-workers.txt   the same for --workers
#   failing.md            why the others do not pass; what stands under a heading "Not played" is left out
#
#   tests/peer-suite/run.sh [--update] [--binary FILE] [--workers N] [--port PORT] [UNIT ...]
#
#   --update     rewrites the list, of the units played
#   --binary     the server, target/release/sirocco by default
#   --workers    plays against that many storage workers
#   --port       the server's; the ports up to 64 above it are used, too
#
# The tests come from Debian's source package, through apt and checked by it; they stay in target/peer-suite, with what
# the last run printed. Where they cannot be had the run is skipped, with a line that says so. Tests that need other
# processes of their own kind (external:skip), minutes or gigabytes are not played, and what OBJECT ENCODING says is not
# compared: ours are the encodings of Redis 8, where small lists and sets are listpacks.
set -euo pipefail
shopt -s inherit_errexit
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)

version=7.0.15
release=bookworm
all_units=(
  unit/{bitfield,bitops,dump,expire,functions,geo,hyperloglog,info-command,keyspace,lazyfree,multi,other,pause}
  unit/{protocol,quit,scan,scripting,sort}
  unit/type/{hash,incr,list,list-3,set,stream,stream-cgroups,string,zset} unit/violations
)
# A unit that takes longer than this, or says nothing for a minute, is ended.
unit_seconds=240
silent_seconds=60

work=$root/target/peer-suite
suite=$work/redis-$version
binary=$root/target/release/sirocco
list=$here/passing.txt
port=21850
update=
workers=1
units=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --update) update=1 ;;
    --binary) binary=$(realpath "$2"); shift ;;
    --workers) workers=$2; list=$here/passing-workers.txt; shift ;;
    --port) port=$2; shift ;;
    -*) sed -n '2,/^set/{/^#/p}' "$0"; exit 2 ;;
    *) units+=("$1") ;;
  esac
  shift
done
[[ ${#units[@]} -gt 0 ]] || units=("${all_units[@]}")
settings=(--storage-workers "$workers" --enable-debug-command yes)

skip() {
  local line="SKIPPED: the tests of Redis $version: $*"
  echo "$line"
  [[ -z ${SIROCCO_SKIP_REPORT:-} ]] || echo "$line" >>"$SIROCCO_SKIP_REPORT"
  exit 0
}

# The place from which this machine has its packages.
mirror() {
  local found
  found=$({
    sed -n 's/^URIs: *\([^ ]*\).*/\1/p' /etc/apt/sources.list.d/*.sources || true
    sed -n 's/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) .*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/*.list || true
  } 2>/dev/null | sed -n '/debian\/\{0,1\}$/p')
  [[ -n $found ]] && head -n 1 <<<"$found"
}

# An apt of its own beside the machine's, which knows nothing but the sources of one release.
fetch() {
  local apt=$work/apt keyring=/usr/share/keyrings/debian-archive-keyring.gpg from found
  command -v apt-get >/dev/null || skip "no apt here"
  [[ -r $keyring ]] || skip "no keys of Debian here"
  from=$(mirror) || skip "no mirror of Debian among apt's sources"
  rm -rf "$apt" "$suite"
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/source" "$suite"
  : >"$apt/status"
  echo "deb-src [signed-by=$keyring] $from $release main" >"$apt/sources.list"
  local options=(-qq -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$apt/lists" -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt/cache")
  [[ $(id -u) != 0 ]] || options+=(-o APT::Sandbox::User=root)
  apt-get "${options[@]}" update >"$work/apt.log" 2>&1 || skip "apt-get update failed: $(tail -n 1 "$work/apt.log")"
  found=$(apt-cache "${options[@]}" showsrc redis 2>/dev/null |
    sed -n "s/^Version: \\(.*:$version-.*\\)/\\1/p" | sort -V | tail -n 1)
  [[ -n $found ]] || skip "$release has another version of redis"
  (cd "$apt/source" && apt-get "${options[@]}" source --download-only "redis=$found" >>"$work/apt.log" 2>&1) ||
    skip "apt-get source failed: $(tail -n 1 "$work/apt.log")"
  tar xf "$apt/source/redis_$version.orig.tar.gz" -C "$suite" --strip-components 1 \
    --wildcards --no-wildcards-match-slash '*/runtest' '*/tests' '*/COPYING'
  # Every unit begins with FUNCTION FLUSH, and some want the append-only file, which are not served yet; nothing else of
  # the tests is changed.
  sed -i 's/^ *r function flush$/catch {&}/; s/^ *r config set $param $val$/catch {&}/' \
    "$suite/tests/support/server.tcl"
  touch "$suite/complete"
}

# Lines of failing.md as unit TAB test; with an argument only those of headings that begin with it.
explained() {
  awk -v heading="${1:-}" -v OFS='\t' '
    sub(/^## /, "") { is_wanted = index($0, heading) == 1 }
    is_wanted && sub(/^- /, "") && at = index($0, ": ") { print substr($0, 1, at - 1), substr($0, at + 2) }' \
    "$here/failing.md"
}

# The versions that the tests look for.
has_tclsh() {
  [[ -n $(type -P tclsh8.5 tclsh8.6 tclsh8.7) ]]
}

prepare() {
  mkdir -p "$work"
  if ! has_tclsh; then
    [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null || skip "no tclsh, and no right to install it"
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends tcl; } \
      >"$work/apt.log" 2>&1 && has_tclsh || skip "tclsh cannot be installed: $(tail -n 1 "$work/apt.log")"
  fi
  [[ -e $suite/complete ]] || fetch
  [[ -x $binary ]] || { echo "no server at $binary: cargo build --release"; exit 2; }
}

server=
start() {
  local folder=$work/data
  rm -rf "$folder"
  mkdir -p "$folder"
  "$binary" --port "$port" --dir "$folder" "${settings[@]}" >"$work/server.log" 2>&1 &
  server=$!
  for _ in $(seq 100); do
    if (exec 3<>"/dev/tcp/127.0.0.1/$port" && printf 'PING\r\n' >&3 && [[ $(head -c 5 <&3) == +PONG ]]) \
      2>/dev/null; then
      return
    fi
    sleep 0.1
  done
  cat "$work/server.log"
  echo "the server does not answer"
  exit 1
}

stop() {
  if [[ -n $server ]]; then
    kill "$server" 2>/dev/null || true
    wait "$server" || echo "the server ended with status $?"
    server=
  fi
}
trap stop EXIT

# Plays a unit and prints a line per test: unit TAB status TAB name. What the tests printed is in $work/output.
play() {
  local unit=$1 status=0 output=$work/output/${1//\//-}.txt
  mkdir -p "$work/output"
  start >&2
  (cd "$suite" && TERM=dumb timeout "$unit_seconds" ./runtest --host 127.0.0.1 --port "$port" --single "$unit" \
    --baseport $((port + 64)) --durable --no-latency --ignore-encoding --timeout "$silent_seconds" \
    --tags "-slow -large-memory" --skipfile "$work/skipped.txt") \
    >"$output" 2>&1 </dev/null || status=$?
  [[ $status != 124 ]] || echo "$unit: ended after $unit_seconds s" >&2
  stop >&2
  awk -v unit="$unit" -v OFS='\t' '
    sub(/^\[ok\]: /, "") { sub(/ \([0-9]+ ms\)$/, ""); print unit, "ok", $0 }
    sub(/^\[err\]: /, "") { sub(/ in tests\/unit\/[^ ]*\.tcl$/, ""); print unit, "err", $0 }
    /^\[exception\]: / { print unit ": " $0 >"/dev/stderr" }' "$output"
}

# Lines of the second file that the first has not, or not so often.
missing_in() {
  awk 'NR == FNR { has[$0]++; next } has[$0]-- <= 0' "$1" "$2"
}

prepare
explained "Not played" | cut -f 2 >"$work/skipped.txt"
results=$work/results.tsv
: >"$results"
echo "units: ${#units[@]}, server: ${binary#"$root"/} ${settings[*]}"
for unit in "${units[@]}"; do
  began=$SECONDS
  play "$unit" >"$work/unit.tsv"
  cat "$work/unit.tsv" >>"$results"
  printf '%-26s %4d pass %4d fail %4d s\n' "$unit" "$(grep -c $'\tok\t' "$work/unit.tsv")" \
    "$(grep -c $'\terr\t' "$work/unit.tsv")" $((SECONDS - began)) || true
done

touch "$list"
awk -F '\t' -v OFS='\t' '$2 == "ok" { print $1, $3 }' "$results" | LC_ALL=C sort >"$work/passed.txt"
printf '%s\n' "${units[@]}" >"$work/units.txt"
awk -F '\t' 'NR == FNR { played[$1]; next } $1 in played' "$work/units.txt" "$list" >"$work/expected.txt"
missing_in "$work/passed.txt" "$work/expected.txt" >"$work/lost.txt"
missing_in "$work/expected.txt" "$work/passed.txt" >"$work/new.txt"
awk -F '\t' -v OFS='\t' '$2 == "err" { print $1, $3 }' "$results" >"$work/failed.txt"

lines() { wc -l <"$work/$1.txt"; }
echo "passed: $(lines passed), failed: $(lines failed), listed: $(lines expected)"
[[ ! -s $work/new.txt ]] || { echo "Passed, and not in ${list##*/}:"; sed 's/^/  /' "$work/new.txt"; }
explained | awk -F '\t' 'NR == FNR { played[$1]; next } $1 in played' "$work/units.txt" - >"$work/explained.txt"
missing_in "$work/explained.txt" "$work/failed.txt" >"$work/unexplained.txt"
[[ ! -s $work/unexplained.txt ]] || { echo "Failed, and not in failing.md:"; sed 's/^/  /' "$work/unexplained.txt"; }
[[ ! -s $work/lost.txt ]] || { echo "In ${list##*/}, and not passed:"; sed 's/^/  /' "$work/lost.txt"; }
if [[ -n $update ]]; then
  { awk -F '\t' 'NR == FNR { played[$1]; next } !($1 in played)' "$work/units.txt" "$list"; cat "$work/passed.txt"; } |
    LC_ALL=C sort >"$work/list.txt"
  cp "$work/list.txt" "$list"
elif [[ -s $work/lost.txt ]]; then
  echo "What the tests printed: ${work#"$root"/}/output"
  exit 1
fi
