// Command proxy is the tool-search sidecar: an HTTP reverse proxy between an agent and an OpenAI-compatible API.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
)

// Exit statuses.
const (
	exitOK      = 0
	exitFailure = 1 // something went wrong while it ran
	exitUsage   = 2 // wrong arguments or a wrong configuration
)

const usage = `The tool-search sidecar for OpenAI-compatible APIs.

Usage:
  proxy [serve] [flags]                                          run the proxy
  proxy check [flags]                                            validate the configuration and print what is in force
  proxy search --tools FILE [--max-results N] [--explain] [QUERY]
                                                                 try queries on a tools file; without QUERY one a line
                                                                 from standard input
  proxy project --request FILE [flags]                           print the projected request and what it saves
  proxy healthcheck [flags]                                      exit 0 if the proxy that runs here is alive
  proxy version                                                  print the version

"proxy COMMAND --help" lists the flags of a command.
`

// streams are the standard streams of a command.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// command runs one subcommand.
type command func(ctx context.Context, args []string, s streams) error

func main() {
	release := ballast()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	release()
	os.Exit(status)
}

func run(ctx context.Context, args []string, s streams) int {
	commands := map[string]command{
		"serve": serve, "check": check, "search": search, "project": project, "healthcheck": healthcheck,
		"version": version,
	}
	name := "serve"
	switch {
	case len(args) == 0:
	case args[0] == "--version" || args[0] == "-v":
		name, args = "version", args[1:]
	case !strings.HasPrefix(args[0], "-"):
		name, args = args[0], args[1:]
	}
	if name == "help" || len(args) > 0 && name == "serve" && (args[0] == "--help" || args[0] == "-h") {
		fmt.Fprint(s.out, usage)
		if name == "help" {
			return exitOK
		}
	}
	do, ok := commands[name]
	if !ok {
		fmt.Fprintf(s.err, "proxy: there is no command %q\n\n%s", name, usage)
		return exitUsage
	}
	err := do(ctx, args, s)
	var wrong usageError
	switch {
	case err == nil, errors.Is(err, pflag.ErrHelp):
		return exitOK
	case errors.As(err, &wrong):
		fmt.Fprintf(s.err, "proxy %s: %v\n", name, err)
		return exitUsage
	default:
		fmt.Fprintf(s.err, "proxy %s: %v\n", name, err)
		return exitFailure
	}
}

// usageError is an error in what the user asked for: arguments or configuration.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// newFlags returns the flag set of a subcommand.
func newFlags(name string, s streams) *pflag.FlagSet {
	flags := pflag.NewFlagSet("proxy "+name, pflag.ContinueOnError)
	flags.SetOutput(s.err)
	flags.SortFlags = false
	return flags
}

// parse parses a subcommand's flags and checks how many arguments are left.
func parse(flags *pflag.FlagSet, args []string, most int) error {
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		return usageError{err}
	}
	if flags.NArg() > most {
		return usageError{fmt.Errorf("unexpected argument %q", flags.Arg(most))}
	}
	return nil
}
