#!/bin/sh
# The status page in a real browser without a window: after some traffic through the proxy it must show it, in light and dark,
# without an error in the console. Screenshots go to the folder in $1 (a temporary one by default).
set -eu
cd "$(dirname "$0")/../.."
out=${1:-$(mktemp -d)}
mkdir -p "$out"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || { echo "left out: there is no chromium here"; exit 0; }
work=$(mktemp -d)
model= proxy=
cleanup() {
	[ -z "$proxy" ] || kill "$proxy" 2>/dev/null || true
	[ -z "$model" ] || kill "$model" 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT INT TERM
CGO_ENABLED=0 go build -o "$work/proxy" ./cmd/proxy
(cd test/clients && go build -o "$work/model" ./model)
"$work/model" >"$work/url" &
model=$!
until [ -s "$work/url" ]; do sleep 0.1; done
UPSTREAM_BASE_URL=$(cat "$work/url")/v1 TOOL_SEARCH_ENABLED=true SERVER_LISTEN=127.0.0.1:18807 ADMIN_LISTEN=127.0.0.1:18808 \
	LOG_LEVEL=warn "$work/proxy" serve &
proxy=$!
until ADMIN_LISTEN=127.0.0.1:18808 "$work/proxy" healthcheck 2>/dev/null; do sleep 0.1; done
(cd test/clients && PROXY_URL=http://127.0.0.1:18807 go test -count=1 -run 'TestChat|TestResponses' . >/dev/null)

for scheme in light dark; do
	dark=
	[ "$scheme" = light ] || dark=--force-dark-mode
	# shellcheck disable=SC2086 # nothing, or one option
	"$browser" --headless=new --no-sandbox --disable-gpu --user-data-dir="$work/$scheme" --hide-scrollbars --window-size=1000,1600 \
		--enable-logging=stderr --v=0 --virtual-time-budget=4000 $dark --screenshot="$out/status-$scheme.png" \
		http://127.0.0.1:18808/ 2>"$work/log-$scheme" >/dev/null
	if grep -E 'CONSOLE.*(error|Error|Refused|violat)' "$work/log-$scheme"; then
		echo "the page complains in the console" >&2
		exit 1
	fi
	[ -s "$out/status-$scheme.png" ]
done
page=$("$browser" --headless=new --no-sandbox --disable-gpu --user-data-dir="$work/dom" --virtual-time-budget=4000 --dump-dom http://127.0.0.1:18808/ 2>/dev/null)
for wanted in 'tokens saved, net' 'hidden round' 'tool_07' 'search: tool_' 'base_url = ' 'projected'; do
	case $page in
	*"$wanted"*) ;;
	*) echo "the page does not show: $wanted" >&2; exit 1 ;;
	esac
done
echo "the status page works; screenshots are in $out"
