package dynamodb

import (
	"crypto/sha256"
	"strings"
)

// Limits of key values in bytes ("Quotas in Amazon DynamoDB", partition keys and sort keys).
const (
	maxHashKey  = 2048
	maxRangeKey = 1024
)

// keyPart is an attribute of a key with its type, S, N or B.
type keyPart struct{ name, kind string }

// keySchema is a partition key and, optionally, a sort key.
type keySchema []keyPart

// hashLength is the length of the hash that begins every key in a sorted list. It scatters partitions as DynamoDB
// does, so that nobody comes to rely on a scan being in order, and it is what parallel scans are divided by.
const hashLength = 4

// partition is the prefix all keys of one partition share, and no others.
func partition(v value) string {
	encoded := v.sortKey()
	sum := sha256.Sum256([]byte(encoded))
	return string(sum[:hashLength]) + encoded
}

// sortKey is a string whose byte order is the order of scalars of one kind, and of which none is a prefix of another.
func (v value) sortKey() string {
	if v.kind == "N" {
		return v.num.sortKey()
	}
	return v.sortPrefix() + "\x00\x01"
}

// sortPrefix is what the sort keys of all strings that begin with v, and only those, begin with.
func (v value) sortPrefix() string {
	return strings.ReplaceAll(v.str, "\x00", "\x00\xff")
}

// key is the place of the item in the list for the schema, and false when the item lacks a part of it.
func (s keySchema) key(it item) (string, bool) {
	var b strings.Builder
	for i, part := range s {
		v, ok := it[part.name]
		if !ok || v.kind != part.kind {
			return "", false
		}
		if i == 0 {
			b.WriteString(partition(v))
		} else {
			b.WriteString(v.sortKey())
		}
	}
	return b.String(), true
}

func (s keySchema) has(name string) bool {
	for _, part := range s {
		if part.name == name {
			return true
		}
	}
	return false
}

// checkKey validates the key a request names an item by.
func (s keySchema) checkKey(key item) error {
	if len(key) != len(s) {
		return validationf("The provided key element does not match the schema")
	}
	for _, part := range s {
		if v, ok := key[part.name]; !ok || v.kind != part.kind {
			return validationf("The provided key element does not match the schema")
		}
	}
	return s.checkValues(key, "")
}

// checkValues validates the length of the key values that the item has; index is "" for a table.
func (s keySchema) checkValues(it item, index string) error {
	for i, part := range s {
		v, ok := it[part.name]
		switch {
		case !ok || v.kind == "N":
		case v.str == "" && index != "":
			return validationf("One or more parameter values are not valid. A value specified for a secondary index key is not supported. The AttributeValue for a key attribute cannot contain an empty %s value. IndexName: %s, IndexKey: %s", longNames[part.kind], index, part.name)
		case v.str == "":
			return validationf("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty %s value. Key: %s", longNames[part.kind], part.name)
		case i == 0 && len(v.str) > maxHashKey:
			return invalidf("Size of hashkey has exceeded the maximum size limit of%d bytes", maxHashKey)
		case i == 1 && len(v.str) > maxRangeKey:
			return invalidf("Aggregated size of all range keys has exceeded the size limit of %d bytes", maxRangeKey)
		}
	}
	return nil
}

var longNames = map[string]string{"S": "string", "B": "binary"}
