package cli

import (
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// count says how many of something there are: 1 event, 2 events.
func count(n int, noun string) string { return counted(n, noun, noun+"s") }

// counted is count for nouns with a plural of their own.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// eventID is the event's id in a ledger key, with its connected account where it has one: what a person calls it.
func eventID(key string) string {
	parts := strings.Split(key, "#")
	id := parts[len(parts)-1]
	if len(parts) == 3 && parts[1] != "-" {
		id += " of " + parts[1]
	}
	return id
}

// some returns the list, and an empty one in place of nil: JSON's null is not a list.
func some[T any](list []T) []T { return append([]T{}, list...) }

// printable removes the blanks a table leaves at the ends of its lines.
func printable(out io.Writer, text string) error {
	for line := range strings.Lines(text) {
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// checkURL refuses what is not the URL of a web server.
func checkURL(cmd *cobra.Command, flag, text string) error {
	if u, err := url.Parse(text); err != nil || u.Host == "" || !slices.Contains([]string{"http", "https"}, u.Scheme) {
		return usagef(cmd, "%s: %q is not an http(s) URL", flag, text)
	}
	return nil
}
