package dynamodb

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxRequest is the largest request body ("Quotas in Amazon DynamoDB": 16 MB).
const maxRequest = 16 << 20

// Options configure a Server. The zero value is usable.
type Options struct {
	Now     func() time.Time // the clock of time to live, tokens and creation times; nil means time.Now
	Region  string           // in ARNs; "" means us-east-1
	Account string           // in ARNs; "" means 000000000000
}

// Server is an in-memory DynamoDB. Make it with New. It is safe for concurrent use and starts no goroutines.
type Server struct {
	now        func() time.Time
	arnPrefix  string
	operations map[string]operation

	requests atomic.Int64

	mu     sync.Mutex // guards everything below
	tables map[string]*table
	tokens map[string]*receipt // by ClientRequestToken
}

// New makes an empty server.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	if o.Account == "" {
		o.Account = "000000000000"
	}
	s := &Server{
		now:       o.Now,
		arnPrefix: fmt.Sprintf("arn:aws:dynamodb:%s:%s:table/", o.Region, o.Account),
		tables:    map[string]*table{},
		tokens:    map[string]*receipt{},
	}
	s.operations = map[string]operation{
		"DynamoDB_20120810.CreateTable":        serve(s.createTable),
		"DynamoDB_20120810.DescribeTable":      serve(s.describeTable),
		"DynamoDB_20120810.DeleteTable":        serve(s.deleteTable),
		"DynamoDB_20120810.ListTables":         serve(s.listTables),
		"DynamoDB_20120810.UpdateTimeToLive":   serve(s.updateTimeToLive),
		"DynamoDB_20120810.DescribeTimeToLive": serve(s.describeTimeToLive),
		"DynamoDB_20120810.PutItem":            serve(s.putItem),
		"DynamoDB_20120810.GetItem":            serve(s.getItem),
		"DynamoDB_20120810.UpdateItem":         serve(s.updateItem),
		"DynamoDB_20120810.DeleteItem":         serve(s.deleteItem),
		"DynamoDB_20120810.BatchGetItem":       serve(s.batchGetItem),
		"DynamoDB_20120810.BatchWriteItem":     serve(s.batchWriteItem),
		"DynamoDB_20120810.Query":              serve(s.query),
		"DynamoDB_20120810.Scan":               serve(s.scan),
		"DynamoDB_20120810.TransactWriteItems": serve(s.transactWriteItems),
		"DynamoDB_20120810.TransactGetItems":   serve(s.transactGetItems),

		"DynamoDBStreams_20120810.ListStreams":      serve(s.listStreams),
		"DynamoDBStreams_20120810.DescribeStream":   serve(s.describeStream),
		"DynamoDBStreams_20120810.GetShardIterator": serve(s.getShardIterator),
		"DynamoDBStreams_20120810.GetRecords":       serve(s.getRecords),
	}
	return s
}

// operation answers the JSON of one request.
type operation func(body []byte) (any, error)

func serve[In, Out any](f func(In) (Out, error)) operation {
	return func(body []byte) (any, error) {
		var in In
		d := json.NewDecoder(bytes.NewReader(body))
		// What is not known here must not look as if it had worked.
		d.DisallowUnknownFields()
		if err := d.Decode(&in); err != nil {
			if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
				return nil, validationf("The parameter %s is not supported by this endpoint", name)
			}
			if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
				return nil, errorf("SerializationException", "Unexpected %s in the request where a value of another type belongs", wrong.Value)
			}
			return nil, errorf("SerializationException", "The request is not valid: %s", err.Error())
		}
		return f(in)
	}
}

// ServeHTTP answers one call of the AWS JSON 1.0 protocol. Signatures are not checked.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		s.answer(w, nil, errorf("SerializationException", "the request body could not be read, or is over 16 MB"))
		return
	}
	op, ok := s.operations[r.Header.Get("X-Amz-Target")]
	if !ok || r.Method != http.MethodPost {
		s.answer(w, nil, errorf("UnknownOperationException", "The operation %q is not supported by this endpoint", r.Header.Get("X-Amz-Target")))
		return
	}
	out, err := op(body)
	s.answer(w, out, err)
}

type errorBody struct {
	Type    string   `json:"__type"`
	Message string   `json:"message"`
	Item    item     `json:",omitempty"`
	Reasons []reason `json:"CancellationReasons,omitempty"`
}

func (s *Server) answer(w http.ResponseWriter, out any, err error) {
	status := http.StatusOK
	if err != nil {
		status = http.StatusBadRequest
		var e *apiError
		if !errors.As(err, &e) {
			status = http.StatusInternalServerError
			e = errorf("InternalServerError", "%s", err.Error())
		}
		out = errorBody{e.fullName(), e.message, e.item, e.reasons}
	}
	body, err := json.Marshal(out)
	if err != nil {
		http.Error(w, "the reply could not be encoded", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/x-amz-json-1.0")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	h.Set("X-Amzn-Requestid", fmt.Sprintf("%052d", s.requests.Add(1)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means the client has gone away
}

// Items is how many items the table holds, 0 if there is no such table.
func (s *Server) Items(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tables[name]; t != nil {
		return t.rows.count
	}
	return 0
}

// Used is the capacity the table and its indexes have used since the table was made. It counts what replies never
// tell: writes whose condition failed use capacity too.
func (s *Server) Used(name string) Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tables[name]; t != nil {
		return t.used
	}
	return Usage{}
}

// table finds a table by its name or ARN. The caller holds the lock.
func (s *Server) table(name string) (*table, error) {
	if t := s.tables[strings.TrimPrefix(name, s.arnPrefix)]; t != nil {
		return t, nil
	}
	return nil, errorf("ResourceNotFoundException", "Requested resource not found")
}

// checkEnum validates a parameter that takes one of a few words or nothing.
func checkEnum(param, got string, allowed ...string) error {
	for _, a := range allowed {
		if got == a || got == "" {
			return nil
		}
	}
	return validationf("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: Member must satisfy enum value set: [%s]", got, param, strings.Join(allowed, ", "))
}

func checkName(param, name string) error {
	if name == "" {
		return validationf("1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", param)
	}
	return nil
}

// capacity is the ConsumedCapacity of a reply.
type capacity struct {
	TableName              string
	CapacityUnits          float64
	ReadCapacityUnits      float64              `json:",omitempty"`
	WriteCapacityUnits     float64              `json:",omitempty"`
	Table                  *onlyUnits           `json:",omitempty"`
	GlobalSecondaryIndexes map[string]onlyUnits `json:",omitempty"`
}

type onlyUnits struct{ CapacityUnits float64 }

// report makes the ConsumedCapacity that ReturnConsumedCapacity, how, asks for; nil for none.
func (u units) report(table, how string) *capacity {
	if how != "TOTAL" && how != "INDEXES" {
		return nil
	}
	c := &capacity{TableName: table, CapacityUnits: u.total()}
	if how == "INDEXES" {
		c.Table = &onlyUnits{u.table}
		for name, n := range u.indexes {
			if c.GlobalSecondaryIndexes == nil {
				c.GlobalSecondaryIndexes = map[string]onlyUnits{}
			}
			c.GlobalSecondaryIndexes[name] = onlyUnits{n}
		}
	}
	return c
}

func checkCapacity(how string) error {
	return checkEnum("returnConsumedCapacity", how, "INDEXES", "TOTAL", "NONE")
}
