package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"backstop/events"
	"backstop/internal/config"
	"backstop/internal/event"
	"backstop/internal/secret"
	"backstop/internal/sender"
)

type sendOptions struct {
	endpoint, secret string
	count            int
	rate             float64
	duplicates       string
	shuffle          bool
	story            string
	customer         string
	account          string
	workers          int
	retries          int
	seed             uint64
	noWait           bool
	timeout          time.Duration
	drop             string
	age              time.Duration
}

func newSend(e *env) *cobra.Command {
	var o sendOptions
	cmd := &cobra.Command{
		Use:   "send TYPE...|FILE...",
		Short: "Sign events and post them, as Stripe would",
		Long: `Send makes fresh events of the samples in events/ (new ids, the time of now), signs
and posts them. A TYPE may hold wildcards: 'customer.subscription.*'. A FILE ending in
.json holds one event body, whose ids and times are made fresh, too.

What is not answered 2xx is sent again, as Stripe does. Against a local stack, send then
waits until every event is settled and counts, from the rows the handlers wrote, how often
each took effect.`,
		Example: `  backstop send invoice.paid
  backstop send 'customer.subscription.*' --count 2000 --duplicates 5%
  backstop send invoice.paid --count 1000 --drop 5% && backstop audit --since 1h --yes
  backstop send --story dunning --shuffle
  backstop send invoice.paid --endpoint https://example.com/webhooks/stripe --secret whsec_...`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && o.story == "":
				return usagef(cmd, "name at least one event type or file, such as invoice.paid, or a --story")
			case len(args) > 0 && o.story != "":
				return usagef(cmd, "a --story brings its own events: name it alone")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return e.send(cmd, args, o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.endpoint, "endpoint", "", "URL to post to (default: the local stack's)")
	flags.StringVar(&o.secret, "secret", "", "signing secret (default: the local stack's, or the first of "+config.SigningSecrets+")")
	flags.IntVar(&o.count, "count", 0, "how many events; the types take turns (default: one of each)")
	flags.Float64Var(&o.rate, "rate", 0, "events a second (default: as fast as they are answered)")
	flags.StringVar(&o.duplicates, "duplicates", "0%", "share of the events delivered twice")
	flags.BoolVar(&o.shuffle, "shuffle", false, "deliver in random order")
	flags.StringVar(&o.story, "story", "", "play one of the stories in events/stories, in its order unless --shuffle; --count plays it for so many customers")
	flags.StringVar(&o.customer, "customer", "", "one customer for all (default: a new one each)")
	flags.StringVar(&o.account, "account", "", "make them events of this connected account")
	flags.IntVar(&o.workers, "workers", 16, "deliveries under way at once")
	flags.IntVar(&o.retries, "retries", 10, "deliveries again after an answer that is not 2xx")
	flags.Uint64Var(&o.seed, "seed", 0, "make the same ids and order again (default: by chance)")
	flags.BoolVar(&o.noWait, "no-wait", false, "do not wait until the local stack has settled them")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long to wait for that")
	flags.StringVar(&o.drop, "drop", "0%", "share of the events lost on the way: the fake Stripe knows them, the endpoint never sees them")
	flags.DurationVar(&o.age, "age", 0, "how long ago the events happened (default with --drop: 20m, since an audit leaves younger ones alone)")
	return cmd
}

func (e *env) send(cmd *cobra.Command, args []string, o sendOptions) error {
	ctx := cmd.Context()
	share, err := parseShare(o.duplicates)
	if err != nil {
		return usagef(cmd, "--duplicates: %v", err)
	}
	dropped, err := parseShare(o.drop)
	if err != nil {
		return usagef(cmd, "--drop: %v", err)
	}
	if err := o.check(cmd); err != nil {
		return err
	}
	if dropped > 0 && o.age == 0 {
		o.age = 20 * time.Minute
	}
	local, err := readDevTarget()
	if err != nil {
		return err
	}
	toLocal := o.endpoint == "" || (local != nil && o.endpoint == local.Endpoint)
	if o.endpoint == "" {
		if local == nil {
			return usagef(cmd, "no local stack runs in this folder: start `backstop dev`, or name an --endpoint")
		}
		o.endpoint = local.Endpoint
	}
	if o.secret == "" {
		if o.secret, err = e.signingSecret(ctx, local, toLocal); err != nil {
			return err
		}
	}
	if o.secret == "" {
		return usagef(cmd, "give the endpoint's signing secret with --secret or in %s", config.SigningSecrets)
	}
	seed := o.seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	random := rand.New(rand.NewPCG(seed, seed))
	fresh := freshEvents
	if o.story != "" {
		fresh = freshStories
	}
	list, err := fresh(args, o, e.now().Add(-o.age), random)
	if err != nil {
		return usagef(cmd, "%w", err)
	}
	if o.story != "" && !o.shuffle {
		o.workers = 1 // in the story's order
	}
	fake := toLocal && local != nil && local.StripeEndpoint != ""
	if fake {
		if err := tellStripe(ctx, local.StripeEndpoint, list); err != nil {
			return err
		}
	} else if dropped > 0 {
		return usagef(cmd, "--drop needs the local stack's fake Stripe, which would know of the events")
	}
	happened := len(list)
	list = drop(list, dropped, random)
	deliveries := sender.Duplicate(list, share, random)
	if o.shuffle {
		random.Shuffle(len(deliveries), func(i, j int) { deliveries[i], deliveries[j] = deliveries[j], deliveries[i] })
	}

	bar := e.bar(len(deliveries), "sending")
	report, err := sender.Send(ctx, deliveries, sender.Options{
		Endpoint: o.endpoint, Secret: o.secret, Workers: o.workers, Rate: o.rate, Retries: o.retries, Now: e.now,
		Progress: func(sender.Answer) { _ = bar.Add(1) },
		Retrying: e.sayOnce(o.retries),
	})
	_ = bar.Finish()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("send: %w", err)
	}
	if fake {
		// What was acknowledged before a Ctrl-C was delivered all the same.
		if err := tellDelivered(context.WithoutCancel(ctx), local.StripeEndpoint, report.Acknowledged); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: %d of %s acknowledged", len(report.Acknowledged), count(len(list), "event"))
	}
	taken := slices.DeleteFunc(slices.Clone(list), func(event sender.Event) bool { return !report.Acknowledged[event.ID] })
	summary := summarise(list, deliveries, report, seed)
	summary.Dropped = happened - len(list)
	summary.Customers = customersOf(taken)
	if toLocal && local != nil && !o.noWait && len(taken) > 0 {
		if summary.Effects, err = e.awaitEffects(ctx, taken, o.timeout); err != nil {
			return err
		}
	}
	return e.printSent(summary, report)
}

// sayOnce says at the first answer that is not 2xx that the delivery is made again: it takes half a minute to give up.
func (e *env) sayOnce(retries int) func(sender.Answer) {
	said := false
	return func(answer sender.Answer) {
		if !said && !e.json {
			fmt.Fprintf(e.Err, "not acknowledged (%s): trying again, up to %s\n", answered(answer), count(retries, "time"))
		}
		said = true
	}
}

// check refuses figures that mean nothing.
func (o *sendOptions) check(cmd *cobra.Command) error {
	switch {
	case cmd.Flags().Changed("count") && o.count < 1:
		return usagef(cmd, "--count: %d is not a number of events: give 1 or more", o.count)
	case o.workers < 1:
		return usagef(cmd, "--workers: give 1 or more, not %d", o.workers)
	case o.retries < 0:
		return usagef(cmd, "--retries: give 0 or more, not %d", o.retries)
	case !(o.rate >= 0):
		return usagef(cmd, "--rate: give the events a second, not %v", o.rate)
	case o.age < 0:
		return usagef(cmd, "--age: events of the future do not happen")
	case o.endpoint != "":
		return checkURL(cmd, "--endpoint", o.endpoint)
	}
	return nil
}

func customersOf(list []sender.Event) []string {
	customers := []string{}
	seen := make(map[string]bool)
	for _, e := range list {
		if e.Customer != "" && !seen[e.Customer] {
			seen[e.Customer] = true
			customers = append(customers, e.Customer)
		}
	}
	return customers
}

// signingSecret is the environment's, else the local stack's newest.
func (e *env) signingSecret(ctx context.Context, local *devTarget, toLocal bool) (string, error) {
	if value, ok := e.vars(config.SigningSecrets); ok {
		if list := config.List(value); len(list) > 0 {
			return list[0], nil
		}
	}
	if local == nil || !toLocal {
		return "", nil
	}
	stored := secret.From(localAWS(local.AWSEndpoint, local.Region), nil, local.Environment[config.SigningSecretID], e.now)
	value, err := stored.Value(ctx)
	if err != nil {
		return "", fmt.Errorf("read the local stack's signing secret: %w", err)
	}
	return value, nil
}

// freshEvents makes the events the arguments ask for, in the order they happened.
func freshEvents(args []string, o sendOptions, now time.Time, random *rand.Rand) ([]sender.Event, error) {
	var samples []sample
	for _, arg := range args {
		found, err := samplesOf(arg)
		if err != nil {
			return nil, err
		}
		samples = append(samples, found...)
	}
	list := make([]sender.Event, cmp.Or(o.count, len(samples)))
	for i := range list {
		from := samples[i%len(samples)]
		body, err := events.Fresh(from.body, events.FreshOptions{
			Now: now, Customer: o.customer, Account: o.account, Rand: random,
		})
		if err == nil {
			list[i], err = toSend(body)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", from.name, err)
		}
	}
	return list, nil
}

// freshStories makes a story happen to new customers, one after the other.
func freshStories(_ []string, o sendOptions, now time.Time, random *rand.Rand) ([]sender.Event, error) {
	story, err := events.FindStory(o.story)
	if errors.Is(err, fs.ErrNotExist) || strings.ContainsAny(o.story, "/\\") {
		return nil, fmt.Errorf("--story: there is no %q; there are %s", o.story, strings.Join(storyNames(), ", "))
	}
	if err != nil {
		return nil, err
	}
	var list []sender.Event
	for range max(o.count, 1) {
		fresh, err := story.Fresh(events.FreshOptions{Now: now, Customer: o.customer, Account: o.account, Rand: random})
		if err != nil {
			return nil, err
		}
		for _, body := range fresh.Events {
			e, err := toSend(body)
			if err != nil {
				return nil, err
			}
			list = append(list, e)
		}
	}
	return list, nil
}

func storyNames() []string {
	stories, err := events.Stories()
	if err != nil {
		return nil // they are built in, and tested
	}
	names := make([]string, len(stories))
	for i, story := range stories {
		names[i] = story.Name
	}
	return names
}

func toSend(body []byte) (sender.Event, error) {
	envelope, err := event.Parse(body)
	if err != nil {
		return sender.Event{}, fmt.Errorf("this is not an event: %w", err)
	}
	return sender.Event{ID: envelope.ID, Type: envelope.Type, Key: envelope.Key(""), Customer: envelope.CustomerRef, Body: body}, nil
}

// sample is what fresh events are made of.
type sample struct {
	name string // its type, or the file it comes from
	body []byte
}

func samplesOf(arg string) ([]sample, error) {
	if strings.HasSuffix(arg, ".json") {
		body, err := os.ReadFile(arg)
		if err != nil {
			return nil, fmt.Errorf("read the event: %w", err)
		}
		return []sample{{arg, body}}, nil
	}
	var found []sample
	for _, typ := range events.Types() {
		matched, err := path.Match(arg, typ.Name)
		if err != nil {
			return nil, fmt.Errorf("%q is not a pattern of event types: %w", arg, err)
		}
		if !matched {
			continue
		}
		body, err := events.Sample(typ.Name)
		if err != nil {
			return nil, err
		}
		found = append(found, sample{typ.Name, body})
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no event type in events/ is called %q; give a file to send another one", arg)
	}
	return found, nil
}

// parseShare reads 5% or 0.05.
func parseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	share, err := strconv.ParseFloat(number, 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share >= 0 && share <= 1) {
		return 0, errors.New("want a share such as 5% or 0.05")
	}
	return share, nil
}

// bar is a progress bar on a terminal and silent elsewhere.
func (e *env) bar(total int, what string) *progressbar.ProgressBar {
	w := e.Err
	if !terminal(e.Err) || e.json {
		w = io.Discard
	}
	return progressbar.NewOptions(total,
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
}
