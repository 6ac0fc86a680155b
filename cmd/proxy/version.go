package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

// buildVersion is set by the linker in releases.
var buildVersion string

// version prints the version, the commit it was built from and the Go release.
func version(_ context.Context, args []string, s streams) error {
	if err := parse(newFlags("version", s), args, 0); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.out, "tool-search-proxy %s %s %s/%s\n", versionText(), runtime.Version(), runtime.GOOS,
		runtime.GOARCH)
	return err
}

// versionText returns the release, or else the commit of the build.
func versionText() string {
	if buildVersion != "" {
		return buildVersion
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	commit, changed := "", ""
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			commit = setting.Value[:min(12, len(setting.Value))]
		case "vcs.modified":
			if setting.Value == "true" {
				changed = "+changes"
			}
		}
	}
	if commit == "" {
		return "development"
	}
	return "development-" + commit + changed
}
