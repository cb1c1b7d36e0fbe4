package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
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
	"backstop/internal/tally"
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
	list, err := freshEvents(args, o, e.now().Add(-o.age), random)
	if o.story != "" {
		list, err = freshStories(o, e.now().Add(-o.age), random)
	}
	if err != nil {
		return usagef(cmd, "%v", err)
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
	})
	_ = bar.Finish()
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if fake {
		if err := tellDelivered(ctx, local.StripeEndpoint, report.Acknowledged); err != nil {
			return err
		}
	}
	summary := summarise(list, deliveries, report, seed)
	summary.Dropped = happened - len(list)
	summary.Customers = customersOf(list)
	if toLocal && local != nil && !o.noWait {
		if summary.Effects, err = e.awaitEffects(ctx, list, o.timeout); err != nil {
			return err
		}
	}
	return e.printSent(summary, report)
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
	var samples [][]byte
	for _, arg := range args {
		found, err := samplesOf(arg)
		if err != nil {
			return nil, err
		}
		samples = append(samples, found...)
	}
	count := o.count
	if count <= 0 {
		count = len(samples)
	}
	list := make([]sender.Event, count)
	for i := range list {
		body, err := events.Fresh(samples[i%len(samples)], events.FreshOptions{
			Now: now, Customer: o.customer, Account: o.account, Rand: random,
		})
		if err != nil {
			return nil, err
		}
		if list[i], err = toSend(body); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// freshStories makes a story happen to new customers, one after the other.
func freshStories(o sendOptions, now time.Time, random *rand.Rand) ([]sender.Event, error) {
	story, err := events.FindStory(o.story)
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

func toSend(body []byte) (sender.Event, error) {
	envelope, err := event.Parse(body)
	if err != nil {
		return sender.Event{}, fmt.Errorf("this is not an event: %w", err)
	}
	return sender.Event{ID: envelope.ID, Type: envelope.Type, Key: envelope.Key(""), Customer: envelope.CustomerRef, Body: body}, nil
}

func samplesOf(arg string) ([][]byte, error) {
	if strings.HasSuffix(arg, ".json") {
		body, err := os.ReadFile(arg)
		if err != nil {
			return nil, fmt.Errorf("read the event: %w", err)
		}
		return [][]byte{body}, nil
	}
	var found [][]byte
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
		found = append(found, body)
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

// sent is what send prints.
type sent struct {
	Events       int            `json:"events"` // delivered ones
	Dropped      int            `json:"dropped,omitempty"`
	Deliveries   int            `json:"deliveries"`
	Attempts     int            `json:"attempts"`
	Acknowledged int            `json:"acknowledged"`
	Refused      int            `json:"refused"`
	Answers      map[string]int `json:"answers"`
	P50MS        float64        `json:"ack_p50_ms"`
	P99MS        float64        `json:"ack_p99_ms"`
	Customers    []string       `json:"customers"` // that the events name, in their order
	Seed         uint64         `json:"seed"`
	Effects      *tally.Tally   `json:"effects,omitempty"`
}

func summarise(list, deliveries []sender.Event, report sender.Report, seed uint64) sent {
	s := sent{
		Events: len(list), Deliveries: len(deliveries), Attempts: report.Deliveries,
		Acknowledged: len(report.Acknowledged), Refused: len(report.Refused), Answers: map[string]int{}, Seed: seed,
		P50MS: milliseconds(sender.Percentile(report.Took, 50)), P99MS: milliseconds(sender.Percentile(report.Took, 99)),
	}
	for _, code := range report.Codes() {
		s.Answers[answerName(code)] = report.Statuses[code]
	}
	return s
}

func answerName(code int) string {
	if code == 0 {
		return "no answer"
	}
	return strconv.Itoa(code)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (e *env) printSent(s sent, report sender.Report) error {
	trouble := s.Acknowledged < s.Events || (s.Effects != nil && !s.Effects.Clean())
	if e.json {
		if err := e.printJSON(s); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(e.Out, "%d events in %d deliveries: %d events acknowledged", s.Events, s.Deliveries, s.Acknowledged)
		if s.Attempts > s.Deliveries {
			fmt.Fprintf(e.Out, " after %d attempts", s.Attempts)
		}
		fmt.Fprintln(e.Out)
		for _, code := range report.Codes() {
			fmt.Fprintf(e.Out, "  %-9s %d\n", answerName(code), report.Statuses[code])
		}
		fmt.Fprintf(e.Out, "  acknowledged in %.1f ms at the median, %.1f ms at the 99th percentile\n", s.P50MS, s.P99MS)
		if s.Dropped > 0 {
			fmt.Fprintf(e.Out, "  %d more were dropped on the way: the next audit finds them, or `backstop audit --since 1h --yes`\n", s.Dropped)
		}
		for i, refused := range report.Refused {
			if i == 5 {
				fmt.Fprintf(e.Out, "  ... and %d more\n", len(report.Refused)-i)
				break
			}
			fmt.Fprintf(e.Out, "  never acknowledged: %s %s, last answer %s\n", refused.Event.ID, refused.Event.Type, answerName(refused.Status))
		}
		if s.Effects != nil {
			printTally(e.Out, *s.Effects)
		}
		if len(s.Customers) == 1 {
			fmt.Fprintf(e.Out, "see what became of it: backstop customer %s\n", s.Customers[0])
		}
	}
	if trouble {
		return errFindings
	}
	return nil
}
