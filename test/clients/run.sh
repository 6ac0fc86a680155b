#!/bin/sh
# Real clients through the real proxy, in front of a scripted model that is as strict as the real API: the official SDKs for
# Go and Node, the agents SDK, and Codex. What needs npm is left out, with a word, where npm cannot be reached.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
model= proxy= second=
cleanup() {
	[ -z "$proxy" ] || kill "$proxy" 2>/dev/null || true
	[ -z "$second" ] || kill "$second" 2>/dev/null || true
	[ -z "$model" ] || kill "$model" 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT INT TERM

(cd ../.. && CGO_ENABLED=0 go build -o "$work/proxy" ./cmd/proxy)
go build -o "$work/model" ./model
"$work/model" >"$work/url" &
model=$!
until [ -s "$work/url" ]; do sleep 0.1; done
PROXY_URL=http://127.0.0.1:18797
export PROXY_URL
UPSTREAM_BASE_URL=$(cat "$work/url")/v1 TOOL_SEARCH_ENABLED=true SERVER_LISTEN=127.0.0.1:18797 ADMIN_LISTEN=127.0.0.1:18798 \
	LOG_LEVEL=warn "$work/proxy" serve &
proxy=$!
until ADMIN_LISTEN=127.0.0.1:18798 "$work/proxy" healthcheck 2>/dev/null; do sleep 0.1; done
# A second proxy for clients that want one id in all events of a stream.
PROXY_ONE_ID_URL=http://127.0.0.1:18799
export PROXY_ONE_ID_URL
UPSTREAM_BASE_URL=$(cat "$work/url")/v1 TOOL_SEARCH_ENABLED=true TOOL_SEARCH_RESPONSE_ID=first SERVER_LISTEN=127.0.0.1:18799 \
	ADMIN_LISTEN=127.0.0.1:18800 LOG_LEVEL=warn "$work/proxy" serve &
second=$!
until ADMIN_LISTEN=127.0.0.1:18800 "$work/proxy" healthcheck 2>/dev/null; do sleep 0.1; done

echo "== openai-go"
go test -count=1 ./...

if command -v npm >/dev/null 2>&1 && (cd node && npm install --no-audit --no-fund --loglevel=error >"$work/npm" 2>&1); then
	for script in openai agents codex; do
		echo "== $script (node)"
		node "node/$script.mjs"
	done
else
	echo "left out: the clients from npm (it cannot be reached here)"
fi

kill "$proxy" && wait "$proxy"
proxy=
kill "$model"
wait "$model" || { echo "a request broke a rule of the API" >&2; exit 1; }
model=
echo "all clients passed"
