module tool-search-proxy/test/clients

go 1.26.0

replace tool-search-proxy => ../..

require (
	github.com/openai/openai-go/v3 v3.98.0
	github.com/tidwall/gjson v1.20.2
	tool-search-proxy v0.0.0-00010101000000-000000000000
)

require (
	github.com/andybalholm/brotli v1.3.0 // indirect
	github.com/coder/websocket v1.8.15 // indirect
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.3.0 // indirect
	github.com/tidwall/sjson v1.2.9 // indirect
)
