package sim

import (
	"context"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"backstop/internal/awslocal"
	localsqs "backstop/internal/awslocal/sqs"
	"backstop/internal/awslocal/stack"
	"backstop/internal/control"
	"backstop/internal/ledger"
	"backstop/internal/projection"
	"backstop/internal/queue"
)

const (
	ourSecret   = "whsec_simulated"
	otherSecret = "whsec_somebody_else"
	region      = "us-east-1"
	account     = "000000000000"
	endpoint    = "http://aws.local"
)

// Options say which history to play.
type Options struct {
	Seed       uint64
	Lifecycles int           // at most so many events; 0: what the seed says
	Codec      *ledger.Codec // shared by all histories, and warmed outside of any bubble
	Hooks      Hooks
	Trace      bool // keep every call, for printing
	Profile    func(*Profile)
	shape      func([]*planned)   // changes the events before the history begins
	figures    func([]figures)    // hears what became of them
	Recorder   *awslocal.Recorder // counts the permissions used, by the name of the process: its kind, then a dash
}

// figures are what a scenario measures of one event.
type figures struct {
	*planned
	enqueued, settled time.Duration // since the start
	status            ledger.Status
	runs              int // of its last handler
	charged           int
}

// Profile lets a test shape a history.
type Profile = profile

// world is one history while it is played.
type world struct {
	Options
	dice    dice
	profile profile
	start   time.Time
	life    context.Context // of everybody
	running sync.WaitGroup

	server *awslocal.Server
	names  stack.Names

	// Past the faults.
	db      *dynamodb.Client
	sqs     *sqs.Client
	ledger  *ledger.Store
	queue   *queue.SQS
	control *control.Store
	rows    *projection.Store

	plan []*planned

	mu        sync.Mutex
	calmed    bool // no faults any more
	paused    bool // the event source is
	lines     int  // of Stripe, still delivering
	people    int  // deeds people have still to do
	processes map[string]*proc
	events    map[ledger.Key]*witness
	groups    map[string]*groupState
	messages  map[string]pointerMessage // in the queue, by message id
	dead      map[string]pointerMessage // in the dead-letter queue
	tokens    map[string]bool           // of transactions that were applied
	seen      map[string]bool           // message ids
	effects   int                       // transactions applied
	outside   outside
	down      window // when a service of AWS is
	service   string // that one
	deaf      bool   // it does what it is told, and nobody hears its replies
	report    Report
	trace     []traceLine
}

func newWorld(ctx context.Context, o Options) (*world, error) {
	w := &world{
		Options: o, dice: dice(mix(o.Seed)), start: time.Now(), life: ctx,
		processes: make(map[string]*proc),
		events:    make(map[ledger.Key]*witness),
		groups:    make(map[string]*groupState),
		messages:  make(map[string]pointerMessage),
		dead:      make(map[string]pointerMessage),
		tokens:    make(map[string]bool),
		seen:      make(map[string]bool),
		outside:   outside{calls: make(map[ledger.Key]map[string]int)},
	}
	w.report.Faults, w.report.Outcomes = make(map[string]int), make(map[string]int)
	w.profile = profileOf(w.dice.about("profile"), o.Lifecycles)
	if o.Profile != nil {
		o.Profile(&w.profile)
	}
	w.plan = w.profile.plan(w.dice.about("plan"), w.start)
	if o.shape != nil {
		o.shape(w.plan)
	}
	for _, e := range w.plan {
		wit := &witness{planned: e}
		w.events[e.key] = wit
		g := w.group(e.group)
		g.events = append(g.events, wit)
	}
	if err := w.build(ctx); err != nil {
		return nil, fmt.Errorf("build the local AWS: %w", err)
	}
	return w, nil
}

func (w *world) build(ctx context.Context) error {
	w.server = awslocal.New(awslocal.Options{Region: region, Account: account, BaseURL: endpoint, Observe: w.observe, Recorder: w.Recorder})
	ids := 0
	w.server.SQS = localsqs.New(localsqs.Options{
		BaseURL: endpoint, Region: region, Account: account,
		NewID: func() string { ids++; return fmt.Sprintf("message-%d", ids) }, // under the server's lock
	})
	cfg := awslocal.Config(&awslocal.Transport{Server: w.server, Caller: "direct"})
	var err error
	if w.names, err = stack.Create(ctx, cfg, "sim"); err != nil {
		return err
	}
	w.db, w.sqs = dynamodb.NewFromConfig(cfg), sqs.NewFromConfig(cfg)
	w.ledger = ledger.New(w.db, w.names.LedgerTable, time.Now, ledger.WithCodec(w.Codec))
	w.queue = queue.New(w.sqs, w.names.QueueURL, w.names.DeadLetterURL)
	w.control = control.New(w.db, w.names.ControlTable)
	w.rows = projection.New(w.db)
	if w.profile.visibility > 0 {
		return w.setVisibility(ctx, w.profile.visibility)
	}
	return nil
}

func (w *world) setVisibility(ctx context.Context, d time.Duration) error {
	_, err := w.sqs.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{
		QueueUrl: &w.names.QueueURL, Attributes: map[string]string{"VisibilityTimeout": fmt.Sprint(int(d.Seconds()))},
	})
	return err
}

// quiet reports whether nothing is left to do: nobody delivers, nothing is open, and the queue is empty.
func (w *world) quiet() bool {
	w.mu.Lock()
	lines := w.lines + w.people
	w.mu.Unlock()
	stats, _ := w.server.SQS.Stats(path.Base(w.names.QueueURL))
	if lines > 0 || stats.Visible+stats.InFlight+stats.Delayed > 0 {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, wit := range w.events {
		if wit.status != "" && !wit.status.Settled() {
			return false
		}
	}
	return true
}

// isDown reports whether a service of AWS is down.
func (w *world) isDown(service string) bool {
	now := time.Now()
	return w.profile.down && service == w.service && !now.Before(w.down.from) && now.Before(w.down.to)
}

type window struct{ from, to time.Time }

// outside is the dependency handlers call.
type outside struct {
	down  []window                      // when it is
	calls map[ledger.Key]map[string]int // by event and idempotency key
}

func (o *outside) isDown(now time.Time) bool {
	return slices.ContainsFunc(o.down, func(w window) bool { return !now.Before(w.from) && now.Before(w.to) })
}
