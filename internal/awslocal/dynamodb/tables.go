package dynamodb

import (
	"maps"
	"regexp"
	"slices"
)

type attributeDefinition struct{ AttributeName, AttributeType string }

type keyElement struct{ AttributeName, KeyType string }

type projectionSpec struct {
	ProjectionType   string
	NonKeyAttributes []string `json:",omitempty"`
}

type indexSpec struct {
	IndexName             string
	KeySchema             []keyElement
	Projection            *projectionSpec
	OnDemandThroughput    any
	WarmThroughput        any
	ProvisionedThroughput any
}

type streamSpec struct {
	StreamEnabled  bool
	StreamViewType string `json:",omitempty"`
}

var validName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)

// schema validates a key schema against the attribute definitions and notes which of them it uses.
func schema(keys []keyElement, defined map[string]string, used map[string]bool) (keySchema, error) {
	if len(keys) == 0 || len(keys) > 2 {
		return nil, validationf("1 validation error detected: Value at 'keySchema' failed to satisfy constraint: Member must have length between 1 and 2")
	}
	var out keySchema
	for i, k := range keys {
		if want := []string{"HASH", "RANGE"}[i]; k.KeyType != want {
			return nil, validationf("Invalid KeySchema: element %d is not a %s key type", i+1, want)
		}
		kind, ok := defined[k.AttributeName]
		if !ok {
			return nil, invalidf("Some index key attributes are not defined in AttributeDefinitions. Keys: [%s], AttributeDefinitions: %v", k.AttributeName, slices.Sorted(maps.Keys(defined)))
		}
		if out.has(k.AttributeName) {
			return nil, validationf("Both the Hash Key and the Range Key element in the KeySchema have the same name")
		}
		used[k.AttributeName] = true
		out = append(out, keyPart{k.AttributeName, kind})
	}
	return out, nil
}

func (s *Server) createTable(in struct {
	TableName                 string
	AttributeDefinitions      []attributeDefinition
	KeySchema                 []keyElement
	GlobalSecondaryIndexes    []indexSpec
	BillingMode               string
	StreamSpecification       *streamSpec
	DeletionProtectionEnabled bool
	// What changes nothing anyone can see here.
	Tags, SSESpecification, TableClass, OnDemandThroughput, WarmThroughput, ResourcePolicy any
}) (tableReply, error) {
	t := &table{name: in.TableName, arn: s.arnPrefix + in.TableName, created: s.now(), defined: in.AttributeDefinitions, protected: in.DeletionProtectionEnabled}
	if !validName.MatchString(in.TableName) {
		return tableReply{}, validationf("Invalid table/index name.  Table/index names must be between 3 and 255 characters long, and may contain only the characters a-z, A-Z, 0-9, '_', '-', and '.'")
	}
	if in.BillingMode != "PAY_PER_REQUEST" {
		return tableReply{}, invalidf("this endpoint has no provisioned capacity, BillingMode must be PAY_PER_REQUEST")
	}
	defined, used := map[string]string{}, map[string]bool{}
	for _, d := range in.AttributeDefinitions {
		if err := checkEnum("attributeDefinitions.1.member.attributeType", d.AttributeType, "B", "N", "S"); err != nil || d.AttributeType == "" {
			return tableReply{}, invalidf("attribute %s must be of type B, N or S", d.AttributeName)
		}
		if _, twice := defined[d.AttributeName]; twice {
			return tableReply{}, invalidf("Cannot have two attributes with the same name")
		}
		defined[d.AttributeName] = d.AttributeType
	}
	var err error
	if t.schema, err = schema(in.KeySchema, defined, used); err != nil {
		return tableReply{}, err
	}
	if in.GlobalSecondaryIndexes != nil && len(in.GlobalSecondaryIndexes) == 0 {
		return tableReply{}, invalidf("List of GlobalSecondaryIndexes is empty")
	}
	if len(in.GlobalSecondaryIndexes) > 20 { // "Quotas in Amazon DynamoDB"
		return tableReply{}, invalidf("GlobalSecondaryIndex count exceeds the per-table limit of 20")
	}
	for _, g := range in.GlobalSecondaryIndexes {
		ix, err := t.newIndex(g, defined, used)
		if err != nil {
			return tableReply{}, err
		}
		t.indexes = append(t.indexes, ix)
	}
	if len(used) != len(defined) {
		return tableReply{}, invalidf("Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions")
	}
	if sp := in.StreamSpecification; sp != nil && sp.StreamEnabled {
		if err := checkEnum("streamSpecification.streamViewType", sp.StreamViewType, "KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"); err != nil || sp.StreamViewType == "" {
			return tableReply{}, invalidf("StreamViewType is required when StreamEnabled is true")
		}
		t.streamView = sp.StreamViewType
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tables[t.name] != nil {
		return tableReply{}, errorf("ResourceInUseException", "Table already exists: %s", t.name)
	}
	s.tables[t.name] = t
	return tableReply{TableDescription: t.describe("ACTIVE")}, nil
}

func (t *table) newIndex(g indexSpec, defined map[string]string, used map[string]bool) (*index, error) {
	if !validName.MatchString(g.IndexName) {
		return nil, validationf("Invalid table/index name.  Table/index names must be between 3 and 255 characters long, and may contain only the characters a-z, A-Z, 0-9, '_', '-', and '.'")
	}
	if t.index(g.IndexName) != nil {
		return nil, invalidf("Duplicate index name: %s", g.IndexName)
	}
	keys, err := schema(g.KeySchema, defined, used)
	if err != nil {
		return nil, err
	}
	if g.Projection == nil {
		return nil, invalidf("Indexes must have a projection specified")
	}
	if err := checkEnum("projectionType", g.Projection.ProjectionType, "ALL", "INCLUDE", "KEYS_ONLY"); err != nil {
		return nil, err
	}
	ix := &index{name: g.IndexName, schema: keys, projection: g.Projection.ProjectionType, include: g.Projection.NonKeyAttributes}
	switch {
	case ix.projection == "":
		return nil, invalidf("Unknown ProjectionType: null")
	case (ix.projection == "INCLUDE") != (len(ix.include) > 0):
		return nil, invalidf("ProjectionType is %s, and NonKeyAttributes has %d members", ix.projection, len(ix.include))
	}
	ix.names = t.keyNames(ix)
	for _, name := range ix.include {
		if !slices.Contains(ix.names, name) {
			ix.names = append(ix.names, name)
		}
	}
	return ix, nil
}

type tableReply struct {
	TableDescription *tableDescription `json:",omitempty"`
	Table            *tableDescription `json:",omitempty"`
}

type tableDescription struct {
	TableName                 string
	TableArn                  string
	TableStatus               string
	CreationDateTime          float64
	AttributeDefinitions      []attributeDefinition
	KeySchema                 []keyElement
	ItemCount                 int
	TableSizeBytes            int
	BillingModeSummary        map[string]any
	ProvisionedThroughput     map[string]int
	DeletionProtectionEnabled bool
	GlobalSecondaryIndexes    []indexDescription `json:",omitempty"`
	StreamSpecification       *streamSpec        `json:",omitempty"`
	LatestStreamArn           string             `json:",omitempty"`
	LatestStreamLabel         string             `json:",omitempty"`
}

type indexDescription struct {
	IndexName             string
	IndexArn              string
	IndexStatus           string
	KeySchema             []keyElement
	Projection            projectionSpec
	ItemCount             int
	IndexSizeBytes        int
	ProvisionedThroughput map[string]int
}

func (s keySchema) elements() []keyElement {
	out := make([]keyElement, len(s))
	for i, part := range s {
		out[i] = keyElement{part.name, []string{"HASH", "RANGE"}[i]}
	}
	return out
}

// describe words the table as DescribeTable does. The counts are exact; DynamoDB's are hours old.
func (t *table) describe(status string) *tableDescription {
	onDemand := map[string]int{"ReadCapacityUnits": 0, "WriteCapacityUnits": 0, "NumberOfDecreasesToday": 0}
	seconds := epoch(t.created)
	d := &tableDescription{
		TableName: t.name, TableArn: t.arn, TableStatus: status,
		CreationDateTime: seconds, AttributeDefinitions: t.defined, KeySchema: t.schema.elements(),
		ItemCount: t.rows.count, TableSizeBytes: t.bytes, ProvisionedThroughput: onDemand, DeletionProtectionEnabled: t.protected,
		BillingModeSummary: map[string]any{"BillingMode": "PAY_PER_REQUEST", "LastUpdateToPayPerRequestDateTime": seconds},
	}
	for _, ix := range t.indexes {
		d.GlobalSecondaryIndexes = append(d.GlobalSecondaryIndexes, indexDescription{
			IndexName: ix.name, IndexArn: t.arn + "/index/" + ix.name, IndexStatus: status, KeySchema: ix.schema.elements(),
			Projection: projectionSpec{ix.projection, ix.include}, ItemCount: ix.entries.count, IndexSizeBytes: ix.bytes, ProvisionedThroughput: onDemand,
		})
	}
	if t.streamView != "" {
		d.StreamSpecification = &streamSpec{true, t.streamView}
		d.LatestStreamLabel = t.streamLabel()
		d.LatestStreamArn = t.streamArn()
	}
	return d
}

type tableRequest struct{ TableName string }

// named finds the table of a control request, whose error names it. The caller holds the lock.
func (s *Server) named(in tableRequest) (*table, error) {
	if err := checkName("tableName", in.TableName); err != nil {
		return nil, err
	}
	t, err := s.table(in.TableName)
	if err != nil {
		return nil, errorf("ResourceNotFoundException", "Requested resource not found: Table: %s not found", in.TableName)
	}
	return t, nil
}

func (s *Server) describeTable(in tableRequest) (tableReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.named(in)
	if err != nil {
		return tableReply{}, err
	}
	return tableReply{Table: t.describe("ACTIVE")}, nil
}

func (s *Server) deleteTable(in tableRequest) (tableReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.named(in)
	if err != nil {
		return tableReply{}, err
	}
	if t.protected {
		return tableReply{}, validationf("Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.")
	}
	delete(s.tables, t.name)
	return tableReply{TableDescription: t.describe("DELETING")}, nil
}

type listTablesReply struct {
	TableNames             []string
	LastEvaluatedTableName string `json:",omitempty"`
}

func (s *Server) listTables(in struct {
	ExclusiveStartTableName string
	Limit                   *int
}) (listTablesReply, error) {
	limit := 100
	if in.Limit != nil {
		limit = *in.Limit
	}
	if limit < 1 || limit > 100 {
		return listTablesReply{}, validationf("1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: Member must have value between 1 and 100", limit)
	}
	s.mu.Lock()
	names := slices.Sorted(maps.Keys(s.tables))
	s.mu.Unlock()
	names = slices.DeleteFunc(names, func(n string) bool { return n <= in.ExclusiveStartTableName })
	out := listTablesReply{TableNames: names}
	if len(names) > limit {
		out.TableNames, out.LastEvaluatedTableName = names[:limit], names[limit-1]
	}
	if out.TableNames == nil {
		out.TableNames = []string{}
	}
	return out, nil
}
