// Command backstop runs the pipeline on a laptop, sends it events, and looks into it, here or on AWS.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"backstop/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, os.LookupEnv)
	stop()
	os.Exit(code)
}
