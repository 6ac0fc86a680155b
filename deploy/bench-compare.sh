#!/bin/sh
# Measures the proxy beside nginx, haproxy, caddy and Go's ReverseProxy with the harness in the given folder; what is
# not there is left out, with a word. Further arguments go to the harness.
set -eu
cd "$(dirname "$0")/.."
harness=${1:?the folder of the harness}
shift
[ -d "$harness/cmd/compare" ] || { echo "skipped: there is no harness at $harness"; exit 0; }
work=$(mktemp -d)
trap 'kill "$proxy" 2>/dev/null; rm -rf "$work"' EXIT INT TERM
CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o "$work/proxy" ./cmd/proxy
TOOL_SEARCH_ENABLED=${TOOL_SEARCH_ENABLED:-true} LOG_LEVEL=warn ADMIN_LISTEN=127.0.0.1:8089 "$work/proxy" serve \
	--listen 127.0.0.1:8088 --upstream http://127.0.0.1:18080 &
proxy=$!
sleep 1
cp -r "$harness" "$work/harness"
cd "$work/harness"
go run ./cmd/compare -peers peers/peers.json -proxy http://127.0.0.1:8088 -upstream 127.0.0.1:18080 -fresh talk "$@"
