package dynamodb

import (
	"maps"
	"slices"
)

// writeParams are common to the single writes and to the members of a transaction.
type writeParams struct {
	TableName           string
	ConditionExpression *string
	expressionParams
	ReturnValuesOnConditionCheckFailure string
}

// replyParams are what only the single writes take.
type replyParams struct {
	ReturnValues                string
	ReturnConsumedCapacity      string
	ReturnItemCollectionMetrics string // for local indexes, of which there are none
}

type putParams struct {
	writeParams
	Item map[string]*wireValue
}

type updateParams struct {
	writeParams
	Key              map[string]*wireValue
	UpdateExpression *string
}

type deleteParams struct {
	writeParams
	Key map[string]*wireValue
}

// write is a validated write, ready to meet a table. Of item and key one is set.
type write struct {
	table   string
	item    item // to put
	key     item // to update, delete or check
	update  update
	updates bool
	deletes bool
	cond    *condition
	tellOld bool // ReturnValuesOnConditionCheckFailure
}

func (p writeParams) prepare(updateExpression *string) (write, error) {
	w := write{table: p.TableName, tellOld: p.ReturnValuesOnConditionCheckFailure == "ALL_OLD"}
	if err := checkName("tableName", p.TableName); err != nil {
		return w, err
	}
	if err := checkEnum("returnValuesOnConditionCheckFailure", p.ReturnValuesOnConditionCheckFailure, "ALL_OLD", "NONE"); err != nil {
		return w, err
	}
	sc, err := p.scope(p.ConditionExpression, updateExpression)
	if err != nil {
		return w, err
	}
	if w.update, err = sc.update(updateExpression); err != nil {
		return w, err
	}
	if w.cond, err = sc.condition("ConditionExpression", p.ConditionExpression); err != nil {
		return w, err
	}
	return w, sc.finish()
}

func (p putParams) prepare() (write, error) {
	if p.Item == nil {
		return write{}, checkName("item", "")
	}
	it, err := decodeItem(p.Item)
	if err != nil {
		return write{}, err
	}
	if it.size() > maxItem {
		return write{}, validationf("Item size has exceeded the maximum allowed size")
	}
	w, err := p.writeParams.prepare(nil)
	w.item = it
	return w, err
}

func (p updateParams) prepare() (write, error) {
	w, err := keyed(p.writeParams, p.Key, p.UpdateExpression)
	w.updates = true
	return w, err
}

func (p deleteParams) prepare() (write, error) {
	w, err := keyed(p.writeParams, p.Key, nil)
	w.deletes = true
	return w, err
}

func keyed(p writeParams, key map[string]*wireValue, updateExpression *string) (write, error) {
	if key == nil {
		return write{}, checkName("key", "")
	}
	k, err := decodeItem(key)
	if err != nil {
		return write{}, err
	}
	w, err := p.prepare(updateExpression)
	w.key = k
	return w, err
}

// place validates the key of the write against the table and returns where it goes.
func (w write) place(t *table) (string, error) {
	key := w.key
	if w.item != nil {
		key = w.item
		if err := t.checkPut(key); err != nil {
			return "", err
		}
	} else if err := t.schema.checkKey(key); err != nil {
		return "", err
	}
	place, _ := t.schema.key(key)
	return place, nil
}

// plan meets the condition and returns the record as it is and as it is to be, nil for none.
func (w write) plan(t *table, place string) (old, new *record, err error) {
	old = t.rows.get(place)
	var before item
	if old != nil {
		before = old.item
	}
	if !w.cond.holds(before) {
		if !w.tellOld {
			before = nil
		}
		return old, old, conditionFailed(before)
	}
	switch {
	case w.item != nil:
		new, err = t.newRecord(w.item)
	case w.updates:
		for _, a := range w.update {
			if t.schema.has(a.path[0].name) {
				return old, old, invalidf("Cannot update attribute %s. This attribute is part of the key", a.path[0].name)
			}
		}
		if before == nil {
			before = maps.Clone(w.key)
		}
		var after item
		if after, err = w.update.apply(before); err == nil {
			new, err = t.newRecord(after)
		}
	case !w.deletes:
		new = old
	}
	return old, new, err
}

// do runs a single write under the lock.
func (s *Server) do(w write) (old, new *record, cost units, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.table(w.table)
	if err != nil {
		return nil, nil, cost, err
	}
	place, err := w.place(t)
	if err != nil {
		return nil, nil, cost, err
	}
	old, new, err = w.plan(t, place)
	if err != nil {
		if e, ok := err.(*apiError); ok && e.code == "ConditionalCheckFailedException" {
			t.used.Write += writeUnits(old.bytes())
		}
		return nil, nil, cost, err
	}
	cost = s.commit(t, old, new)
	t.used.Write += cost.total()
	return old, new, cost, nil
}

// commit stores the outcome of a plan. The caller holds the lock.
func (s *Server) commit(t *table, old, new *record) units {
	s.notice(t, old, new, nil)
	return t.replace(old, new)
}

type writeReply struct {
	Attributes       item      `json:",omitempty"`
	ConsumedCapacity *capacity `json:",omitempty"`
}

// answerWrite does a single write and words its reply.
func (s *Server) answerWrite(w write, p replyParams, allowed ...string) (writeReply, error) {
	if err := checkCapacity(p.ReturnConsumedCapacity); err != nil {
		return writeReply{}, err
	}
	if err := checkEnum("returnItemCollectionMetrics", p.ReturnItemCollectionMetrics, "SIZE", "NONE"); err != nil {
		return writeReply{}, err
	}
	if err := checkEnum("returnValues", p.ReturnValues, "ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"); err != nil {
		return writeReply{}, err
	}
	if p.ReturnValues != "" && !slices.Contains(allowed, p.ReturnValues) {
		return writeReply{}, validationf("Return values set to invalid value")
	}
	old, new, cost, err := s.do(w)
	if err != nil {
		return writeReply{}, err
	}
	reply := writeReply{ConsumedCapacity: cost.report(w.table, p.ReturnConsumedCapacity)}
	switch p.ReturnValues {
	case "ALL_OLD":
		if old != nil {
			reply.Attributes = old.item
		}
	case "UPDATED_OLD":
		if old != nil {
			reply.Attributes = w.update.touched(old.item)
		}
	case "ALL_NEW":
		reply.Attributes = new.item
	case "UPDATED_NEW":
		reply.Attributes = w.update.touched(new.item)
	}
	return reply, nil
}

func (s *Server) putItem(in struct {
	putParams
	replyParams
}) (writeReply, error) {
	w, err := in.putParams.prepare()
	if err != nil {
		return writeReply{}, err
	}
	return s.answerWrite(w, in.replyParams, "NONE", "ALL_OLD")
}

func (s *Server) updateItem(in struct {
	updateParams
	replyParams
}) (writeReply, error) {
	w, err := in.updateParams.prepare()
	if err != nil {
		return writeReply{}, err
	}
	return s.answerWrite(w, in.replyParams, "NONE", "ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW")
}

func (s *Server) deleteItem(in struct {
	deleteParams
	replyParams
}) (writeReply, error) {
	w, err := in.deleteParams.prepare()
	if err != nil {
		return writeReply{}, err
	}
	return s.answerWrite(w, in.replyParams, "NONE", "ALL_OLD")
}
