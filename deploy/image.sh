#!/bin/sh
# Packs bin/proxy into an image, with docker where it runs and with buildah elsewhere. With "verify" as the second
# argument the image is mounted afterwards and what is in it is run (buildah only, as root).
set -eu
cd "$(dirname "$0")/.."
image=${1:-tool-search-proxy:local}
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT

certificates=
for file in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
	[ -f "$file" ] && certificates=$file && break
done
[ -n "$certificates" ] || { echo "no CA certificates found on this machine" >&2; exit 1; }
cp "$certificates" "$context/ca-certificates.crt"
cp bin/proxy "$context/proxy"

if [ "${2:-}" != verify ] && command -v docker >/dev/null 2>&1 && docker info >/dev/null 2>&1; then
	docker build --tag "$image" --file deploy/Dockerfile.binary "$context"
	exit
fi
command -v buildah >/dev/null 2>&1 || { echo "neither docker nor buildah runs here" >&2; exit 1; }
storage="--storage-driver vfs"
# shellcheck disable=SC2086 # the options are words
buildah $storage build --isolation chroot --format docker --tag "$image" --file deploy/Dockerfile.binary "$context"
[ "${2:-}" = verify ] || exit 0

container=$(buildah $storage from "$image")
root=$(buildah $storage mount "$container")
"$root/proxy" version
[ -s "$root/etc/ssl/certs/ca-certificates.crt" ]
[ "$(buildah $storage inspect --format '{{.OCIv1.Config.User}}' "$container")" = 65532:65532 ]
ADMIN_LISTEN=127.0.0.1:18788 SERVER_LISTEN=127.0.0.1:18787 "$root/proxy" serve &
proxy=$!
trap 'kill "$proxy" 2>/dev/null; rm -rf "$context"' EXIT
for _ in 1 2 3 4 5 6 7 8 9 10; do
	if ADMIN_LISTEN=127.0.0.1:18788 "$root/proxy" healthcheck; then healthy=yes && break; fi
	sleep 0.5
done
[ "${healthy:-}" = yes ] || { echo "the proxy in the image does not get healthy" >&2; exit 1; }
buildah $storage umount "$container" >/dev/null
buildah $storage rm "$container" >/dev/null
echo "the image runs"
